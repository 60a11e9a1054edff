"""What a custodian does, apart from any screen: rehearse, choose, book, release. For the command and the console."""

"""What a custodian does, apart from any screen: choose, book, release. For the command and the console."""

"""What passes the wall: a release, its file, its words, and what can be read off it. Public, all of it."""

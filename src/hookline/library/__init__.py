"""hookline inside a program: the methods of the clients, without a server."""

"""What can be seen of a client from outside: the transcript of its session, and what its working directory stands for."""

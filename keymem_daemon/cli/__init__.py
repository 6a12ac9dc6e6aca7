"""The administration command line. A command imports its own module only when it runs."""

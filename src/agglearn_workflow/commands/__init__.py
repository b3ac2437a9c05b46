"""Commands on the project: each is a module with HELP, ABOUT, `add_options(command)` and `run(args)`."""

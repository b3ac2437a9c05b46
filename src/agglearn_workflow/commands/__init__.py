"""Commands on the project: each is a module with HELP, ABOUT (its docstring), `add_options(command)` and `run(args)`."""

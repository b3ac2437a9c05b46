"""Commands on the project: each is a module with its docstring, which is the help, HELP, `add_options(command)` and `run(args)`."""

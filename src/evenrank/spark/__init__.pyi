# The public names with their types; __init__.py loads each when it is first used.

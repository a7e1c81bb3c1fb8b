# The public names with their types; __init__.py loads each when it is first used.

from evenrank.spark.auditing import audit as audit
from evenrank.spark.measuring import measure as measure

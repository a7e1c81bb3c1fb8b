# The public names with their types; __init__.py loads each when it is first used.

from evenrank.spark.auditing import audit as audit
from evenrank.spark.measuring import measure as measure
from evenrank.spark.offsetting import offset as offset
from evenrank.spark.ranking import rank as rank
from evenrank.spark.summing import fit as fit
from evenrank.spark.summing import moments as moments

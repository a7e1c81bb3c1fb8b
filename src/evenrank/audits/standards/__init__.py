"""Audits in the form that a regulator asks for."""

from evenrank.audits.standards.categories import CategoryRate, CategoryTable
from evenrank.audits.standards.ll144 import RATES, REDUCTIONS, BiasAudit, bias_audit

__all__ = ["RATES", "REDUCTIONS", "BiasAudit", "CategoryRate", "CategoryTable", "bias_audit"]

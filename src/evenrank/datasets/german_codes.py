"""What the columns of German Credit and their codes mean, after the documentation UCI publishes with the file."""

from __future__ import annotations

SEX, AGE, CREDIT = 8, 12, 20
"""Columns (from 0) that are not features: the two the groups come from, and the label."""

WOMEN = ("A92", "A95")
GOOD = "1"

NUMERIC = {
    1: "duration in months",
    4: "credit amount in DM",
    7: "instalment rate in % of income",
    10: "residence since",
    15: "credits at this bank",
    17: "dependants",
}

CATEGORICAL = {
    0: (
        "checking account",
        {"A11": "below 0 DM", "A12": "0 to 200 DM", "A13": "200 DM or more, or salary for a year", "A14": "none"},
    ),
    2: (
        "credit history",
        {
            "A30": "no credits, or all paid back",
            "A31": "all at this bank paid back",
            "A32": "existing paid back till now",
            "A33": "delay in the past",
            "A34": "critical, or credits elsewhere",
        },
    ),
    3: (
        "purpose",
        # A47, vacation, is documented and never occurs.
        {
            "A40": "new car",
            "A41": "used car",
            "A42": "furniture/equipment",
            "A43": "radio/television",
            "A44": "domestic appliances",
            "A45": "repairs",
            "A46": "education",
            "A48": "retraining",
            "A49": "business",
            "A410": "others",
        },
    ),
    5: (
        "savings",
        {
            "A61": "below 100 DM",
            "A62": "100 to 500 DM",
            "A63": "500 to 1000 DM",
            "A64": "1000 DM or more",
            "A65": "unknown or none",
        },
    ),
    6: (
        "employed for",
        {
            "A71": "unemployed",
            "A72": "below 1 year",
            "A73": "1 to 4 years",
            "A74": "4 to 7 years",
            "A75": "7 years or more",
        },
    ),
    9: ("other debtors", {"A101": "none", "A102": "co-applicant", "A103": "guarantor"}),
    11: (
        "property",
        {
            "A121": "real estate",
            "A122": "building society savings or life insurance",
            "A123": "car or other",
            "A124": "unknown or none",
        },
    ),
    13: ("other instalment plans", {"A141": "bank", "A142": "stores", "A143": "none"}),
    14: ("housing", {"A151": "rent", "A152": "own", "A153": "for free"}),
    16: (
        "job",
        {
            "A171": "unemployed or unskilled, non-resident",
            "A172": "unskilled, resident",
            "A173": "skilled employee/official",
            "A174": "management, self-employed or highly qualified",
        },
    ),
    18: ("telephone", {"A191": "none", "A192": "registered"}),
    19: ("foreign worker", {"A201": "yes", "A202": "no"}),
}

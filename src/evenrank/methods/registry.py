"""The methods, as data: commands, sweeps, model files, pages and documentation all read this table."""

from __future__ import annotations

from dataclasses import replace

from evenrank.methods import runs
from evenrank.methods.families import (
    ADAPTS,
    AWARE,
    BEYOND,
    BLIND,
    DELTR_FACTS,
    FAIRNESS,
    FORGONE,
    GAMMA,
    ITEMS,
    PART,
    PENALTY,
    PUSH,
    SORTED,
    THETA,
    TOP_K,
    TRAINING,
    UNLABELLED,
    boosted,
    deltr,
    exposed,
    fastar,
    mapped,
    offset,
    prefixes,
    regularized,
)
from evenrank.methods.method import IN, POST, Facts, Method, Sees

GEYIK = "Geyik et al., KDD 2019"

METHODS = {
    method.name: method
    for method in (
        regularized(
            "amortized", "amortized", "fairness regularisation, gaps pooled over all queries (the paper's method)"
        ),
        regularized(
            "per_query",
            "per-query",
            "fairness regularisation, gaps within each query (the paper's ablation)",
            scope="per_query",
        ),
        regularized(
            "amortized_aware", "amortized, group seen", "as amortized, the model seeing the group itself", aware=True
        ),
        regularized(
            "centered",
            "centered",
            "as amortized, gaps of the scores less their query's mean, which alone can change a ranking",
            target="centered",
        ),
        regularized(
            "centered_pairwise",
            "centered, pairwise",
            "as centered, trained on differences within queries",
            target="centered",
            loss="pairwise",
        ),
        replace(
            regularized(
                "centered_beyond",
                "centered, beyond α*",
                "as centered_pairwise, going on beyond α* in the direction that led there",
                target="centered",
                loss="pairwise",
            ),
            strength=BEYOND,
            run=runs.beyond,
            settings=("ridge", "fit_intercept"),
            saves=False,
        ),
        replace(
            regularized(
                "centered_topk",
                "centered, top k",
                "as centered_pairwise, for the top k: lists count as far as they can change there",
                target="centered",
                loss="pairwise",
            ),
            strength=PART,
            run=runs.selected,
            settings=("makes_up", "ridge", "fit_intercept"),
            by_k=True,
            saves=False,
        ),
        replace(
            regularized(
                "ranked_topk",
                "ranks, top k",
                "as centered_topk, with the features' ranks in their lists too; makes up for random order's gap",
                target="centered",
                loss="pairwise",
            ),
            strength=PART,
            run=runs.selected_by_ranks,
            settings=("makes_up", "ridge", "fit_intercept"),
            by_k=True,
            saves=False,
        ),
        deltr("deltr", "DELTR", "ListNet with a penalty on disparate exposure"),
        deltr("deltr_aware", "DELTR, group seen", "DELTR with the protected flag as a feature", aware=True),
        deltr(
            "deltr_larger", "DELTR, larger protected", "DELTR with the larger group as the protected one", larger=True
        ),
        Method(
            "deltr_published",
            "DELTR, published",
            "DELTR as its package trains it: the protected flag as a feature, 3000 steps",
            kind=IN,
            model="linear",
            strength=GAMMA,
            sees=AWARE,
            home=("evenrank.linear.deltr", "DELTR"),
            run=runs.deltr_published,
            knobs=(),
            settings=("max_iter", "learning_rate"),
            fixed={"reference": True},
            by_name=True,
            saves=False,
            facts=DELTR_FACTS,
        ),
        fastar("fastar", "FA*IR", "FA*IR: a minimum of protected items in every prefix, significance adjusted"),
        fastar("fastar_unadjusted", "FA*IR, unadjusted", "FA*IR without the adjustment", adjust=False),
        fastar(
            "fastar_larger", "FA*IR, larger protected", "FA*IR with the larger group as the protected one", larger=True
        ),
        Method(
            "controller",
            "controller",
            "lists served in turn, each shifted against the gap of those before it",
            kind=POST,
            model="",
            strength=PUSH,
            sees=Sees(group_at_serving=True, other_lists=True),
            home=("evenrank.rerankers.controller", "FairController"),
            run=runs.controller,
            knobs=("notion", "gain"),
            settings=("value", "limit", "memory", *TRAINING),
            by_notion=True,
            by_k=True,
            in_turn=True,
            saves=False,
            direct=True,
            facts=Facts(
                "the gap of all lists served goes to 0 as their number grows",
                "microseconds per list, one after the other",
                "after Morik et al., SIGIR 2020",
            ),
        ),
        offset("offset", "offset", "one number per group added to its scores, chosen on the top k", AWARE),
        offset(
            "offset_adaptive",
            "offset, adaptive",
            "as offset, chosen anew on the lists to be ranked, without labels",
            ADAPTS,
        ),
        mapped(
            "quantile_match",
            "quantile match",
            "protected items get the others' score of the same percentile",
            ("evenrank.rerankers.quantiles", "QuantileMatch"),
            PART,
            UNLABELLED,
            Facts(
                "groups' scores have nearly one distribution on the rows it is fitted to", SORTED, "known in testing"
            ),
            knobs=("protected",),
        ),
        mapped(
            "quantile_barycentre",
            "quantile barycentre",
            "groups' scores moved to their common distribution (CFA)",
            ("evenrank.rerankers.quantiles", "QuantileBarycentre"),
            THETA,
            UNLABELLED,
            Facts(
                "groups' scores have one distribution on the rows it is fitted to", SORTED, "Zehlike et al., DMKD 2020"
            ),
        ),
        mapped(
            "eopp_transform",
            "opportunity transform",
            "relevant items of all groups get one distribution of scores",
            ("evenrank.rerankers.opportunity", "EqualOpportunityTransform"),
            PART,
            AWARE,
            Facts(
                "relevant items of all groups have one distribution of scores on the rows it is fitted to",
                SORTED,
                "Nandy et al., 2021",
            ),
            settings=("n_quantiles",),
        ),
        *(
            prefixes(
                f"det_{rule}",
                f"Det, {rule.replace('_', ' ')}",
                f"every prefix has each group's share of the data ({what})",
                ("evenrank.rerankers.det", "DetRanker"),
                Facts(f"no group is below its share in any prefix, if the list has the items: {when}", SORTED, GEYIK),
                rule=rule,
            )
            for rule, what, when in (
                ("greedy", "DetGreedy: the best item that may come next", "always with up to three groups"),
                ("cons", "DetCons: the group that falls due first", "in every list tried"),
                ("relaxed", "DetRelaxed: the same, more by score", "in every list tried"),
                ("const_sort", "DetConstSort: items move up as far as none falls short", "always"),
            )
        ),
        prefixes(
            "fastar_multinomial",
            "FA*IR, several groups",
            "FA*IR for several protected groups, all but the largest, significance adjusted",
            ("evenrank.rerankers.multinomial", "MultinomialFAStar"),
            Facts(
                "every prefix has its minima, if the list has the items: always; a list drawn with these shares fails "
                "them with at most the probability asked for",
                f"{SORTED}; a table per k, which grows like k to the number of groups",
                "Zehlike et al., 2022",
            ),
        ),
        exposed(
            "exposure_parity",
            "exposure, parity",
            "rankings drawn at random: groups' items have the same exposure on average",
            "parity",
            "groups' mean exposures are equal in every list, on average over draws: always",
        ),
        exposed(
            "exposure_treatment",
            "exposure, treatment",
            "rankings drawn at random: groups have exposure in proportion to their relevance",
            "disparate_treatment",
            "exposure per relevance is equal in every list, on average over draws: where rankings allow it",
        ),
        exposed(
            "exposure_impact",
            "exposure, impact",
            "rankings drawn at random: groups have clicks in proportion to their relevance",
            "disparate_impact",
            "clicks per relevance are equal in every list, on average over draws: where rankings allow it",
        ),
        exposed(
            "exposure_individual",
            "exposure, individual",
            "rankings drawn at random: every item has exposure in proportion to its relevance",
            "individual",
            "exposure per relevance is equal for all items, on average over draws: as nearly as rankings allow",
            ITEMS,
        ),
        Method(
            "equity_of_attention",
            "equity of attention",
            "lists served in turn: over all lists every item has attention in proportion to its relevance",
            kind=POST,
            model="",
            strength=FORGONE,
            sees=Sees(group_at_training=False, other_lists=True),
            home=("evenrank.rerankers.attention", "EquityOfAttention"),
            run=runs.attention,
            knobs=("theta",),
            settings=TRAINING,
            in_turn=True,
            saves=False,
            direct=True,
            facts=Facts(
                "items' attention comes as near to their relevance as the next list can bring it: always",
                "a sort per list; with theta above 0 a program of whole numbers",
                "Biega et al., SIGIR 2018",
            ),
        ),
        boosted(
            "lightgbm",
            "LightGBM",
            "LightGBM's trees (LambdaMART) and the gap",
            ("evenrank.lightgbm", "FairLGBMRanker"),
            verbose=-1,
        ),
        boosted(
            "xgboost", "XGBoost", "XGBoost's trees (LambdaMART) and the gap", ("evenrank.xgboost", "FairXGBRanker")
        ),
        Method(
            "mlp",
            "network",
            "a neural network (ListNet) and the gap",
            model="mlp",
            extra="torch",
            home=("evenrank.torch", "FairNeuralRanker"),
            run=runs.neural,
            kind=IN,
            strength=PENALTY,
            sees=BLIND,
            knobs=(*FAIRNESS, "scope", "impute", "group_aware", "verbose"),
            settings=None,
            by_notion=True,
            facts=Facts(TOP_K, "that of training a network", "evenrank"),
        ),
    )
}

"""What the parameters of PySR are called here, for those who come with its habits."""

import difflib
from collections.abc import Mapping, Sequence

# What to do here instead of each parameter of PySR.
_INSTEAD = {
    "Use generations=, or max_time= in seconds.": "niterations ncycles_per_iteration",
    'Use operators=("+", "*", "exp"), one list for all.': "binary_operators unary_operators",
    "Use pmsr.add_operator, which derives all forms.": (
        "extra_sympy_mappings extra_torch_mappings extra_jax_mappings"
    ),
    "Use search=pmsr.Search(n_islands=...).": "populations npop",
    "Use max_complexity=.": "maxsize maxdepth",
    "Use max_time=.": "timeout_in_seconds",
    "Use search=pmsr.Search(max_evaluations=...).": "max_evals",
    "Use patience=, or a function in callbacks= that returns True.": "early_stop_condition",
    "Use law_prior=pmsr.LawPrior(...), which has the cost of every operator.": (
        "parsimony adaptive_parsimony_scaling use_frequency use_frequency_in_tournament "
        "complexity_of_operators complexity_of_constants complexity_of_variables complexity_mapping"
    ),
    "Small laws are screened first, by themselves.": "warmup_maxsize_by",
    'Use forbid={"exp": ["exp", "sin"]}: no exp and no sin inside exp.': "nested_constraints",
    "Use max_complexity= for whole laws, and max_uses= and forbid= for operators.": "constraints",
    "The best has the highest score; choose another with select(3).": "model_selection",
    "Use noise=: errors are weighed by the distribution of the noise.": (
        "elementwise_loss loss loss_function loss_function_expression loss_scale full_objective "
        "denoise"
    ),
    "Use n_jobs=, and joblib.parallel_config for a cluster.": (
        "procs parallelism multithreading cluster_manager"
    ),
    "Use units=: what contradicts them is impossible.": (
        "dimensional_constraint_penalty dimensionless_constants_only"
    ),
    "A search of many columns begins with those that matter by itself.": "select_k_features",
    "A search of many rows screens laws on some of them by itself.": "batching batch_size",
    "Use checkpoint= for the search and save(folder) for the result.": (
        "output_directory run_id equation_file temp_equation_file tempdir delete_tempfiles"
    ),
    "Use verbose=.": "progress verbosity update_verbosity",
    "Use random_state=: a fit repeats to the last bit, for any number of workers.": "deterministic",
    "Use search=pmsr.Search(p_crossover=..., p_mutation=...).": (
        "crossover_probability weight_add_node weight_insert_node weight_delete_node "
        "weight_do_nothing weight_mutate_constant weight_mutate_operator weight_swap_operands "
        "weight_rotate_tree weight_randomize"
    ),
    "Laws are simplified and their parameters fitted by themselves.": (
        "should_simplify should_optimize_constants optimizer_algorithm optimizer_nrestarts "
        "optimizer_iterations optimize_probability weight_simplify weight_optimize"
    ),
    "Compiled code and double precision are all there is.": "precision turbo bumper fast_cycle",
    "best_ has to_callable(), to_python(), to_pymc(), sympy() and latex().": (
        "output_torch_format output_jax_format"
    ),
}
FROM_PYSR = {name: hint for hint, names in _INSTEAD.items() for name in names.split()}
"""What the parameters of PySR are called here."""

ATTRIBUTES = {
    "sympy": "Use best_.sympy(fitted=True), or result_[3].sympy(fitted=True).",
    "latex_table": "Use equations_.to_latex().",
    "get_best": "Use best_, or equations_.iloc[0] for its row.",
    "get_hof": "Use equations_, or pareto_front_.",
    "equations": "Use equations_.",
    "jax": "Use best_.to_python(), whose functions jax.numpy has too, or best_.to_pymc().",
    "pytorch": "Use best_.to_callable() or best_.to_python().",
    "refresh": "Use callbacks=, or warm_start=True and another fit.",
    "from_file": "Use pmsr.load(folder), of what save(folder) wrote.",
    "julia_state_": "Use result_.",
    "equation_file_": "Use save(folder), or equations_.to_csv(file).",
}
"""What to use here instead of methods and attributes of PySR's estimator."""

FOR_FIT = {
    "weights": "Use y_err= for known errors, sample_weight= for counts.",
    "variable_names": "Give X as a table: its columns have names.",
    "X_units": "Use units= of the estimator, by the names of columns.",
    "y_units": "Use units= of the estimator: the target's stands under its name.",
    "category": "Use groups=: one law, with constants of its own for each group.",
    "Xresampled": "Give X and y as they were measured: noise is part of the model.",
}
"""What the arguments of PySR's `fit` are called here."""


def describe_unknown(
    name: str,
    known: Sequence[str],
    instead: Mapping[str, str] = FROM_PYSR,
    *,
    what: str = "There is no parameter",
) -> str:
    """Say what an argument that the estimator does not have is called here.

    Parameters
    ----------
    name
        The argument.
    known
        Those that there are.
    instead
        What to do instead of some that other programs have.
    what
        How the sentence begins.

    Examples
    --------
    >>> describe_unknown("niterations", ["generations"])
    "There is no parameter 'niterations'. Use generations=, or max_time= in seconds."
    >>> describe_unknown("max_tim", ["max_time", "patience"])
    "There is no parameter 'max_tim'. Did you mean max_time=?"
    """
    close = difflib.get_close_matches(name, known, n=1)
    if name in instead:
        hint = instead[name]
    elif close:
        hint = f"Did you mean {close[0]}=?"
    else:
        hint = f"Available: {', '.join(known)}."
    return f"{what} {name!r}. {hint}"

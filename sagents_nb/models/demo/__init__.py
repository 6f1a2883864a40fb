"""The offline demo model: rules in place of a language model, real plans and real tool calls.

``words`` knows English, ``history`` reads the conversation and what calls came to, ``tools``
and ``calls`` pick a tool and its arguments for a step, ``documents`` says what goes into a file,
``mending`` mends a cell that failed, ``model`` plans, speaks and streams.

Steps that ask something of a data frame of the notebook go through ``analysis``: ``frames`` is
what is known of frames, ``things`` what their rows are of, ``reading`` says what each word of a
question is (by ``data_words``), with ``dates`` and ``conditions``, and ``asked`` puts together its
parts. Of these ``questions`` has a query made by the subject that the question is of: ``plots``,
``missing_values``, ``dates``, ``growth``, ``shares``, ``comparisons``, ``rankings``, ``counts`` or
``aggregates``; ``asked`` lets no word be missing from it. ``queries`` evaluates it or writes pandas
code for it, and ``replies`` says what came of it.
"""

from .model import DemoModel

__all__ = ["DemoModel"]

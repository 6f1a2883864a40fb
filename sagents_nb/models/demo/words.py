"""What the demo model knows of English: clauses, verbs that mean the same, superlatives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# A text of several lines begins and ends beside no letter: 5" is an inch.
QUOTED = re.compile(
    r"\"([^\"\n]*|(?<!\w\")(?=\S)[^\"]{1,4000}(?=\"(?!\w)))\"|“([^”]{0,4000})”|`([^`\n]+)`"
    r"|(?<![\w'])'([^'\n]+|(?=\S)[^']{1,4000})'(?!\w)"
)
PATH = re.compile(
    r"(?<![\w./:])/(?:[\w.*?-]+/)*[\w*?-][\w.*?-]*(?<![.?])"
    r"|(?<![\w./@-])[\w-]+(?:/[\w-]+)*\.(?:md|txt|csv|tsv|json|py|html|ya?ml|log|rst|ipynb|sql)\b"
)
IDENTIFIER = re.compile(r"\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\b")
NUMBER = re.compile(r"(?<![\w./-])-?\d+(?:\.\d+)?(?![\w/])")
# Bounded, as a long text must not take a quadratic time.
ARITHMETIC = re.compile(
    r"(?<![\d.])\({0,9}\d[\d\s.()]{0,40}"
    r"(?:(?:\*\*|//|[-+*/%])\s{0,9}\({0,9}\d[\d.]{0,30}[\s)]{0,9}){1,50}"
)
# One that nobody closed goes to the end, as in Markdown.
_FENCED = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})[^\n]*(?:\n(?P<inside>.*?))??"
    r"(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
WORD = re.compile(r"[A-Za-z]+")


def word_set(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


# What a verb is for → the words people use, and tools are named after.
_GROUPS = {
    "write": "write save store create record export note put overwrite",
    "read": "read open show display view print cat",
    "list": "list ls",
    "delete": "delete remove erase discard",
    "move": "move rename",
    "edit": "edit replace change correct substitute fix modify",
    "search": "search find grep look lookup locate query google",
    "count": "count number tally many",
    "describe": "describe compare average mean median summarize summarise summary statistic "
    "stat analyze analyse analysis distribution differ aggregate group",
    "run": "run execute compute calculate evaluate calculator eval",
    "plot": "plot chart draw graph visualize visualise",
    "get": "get fetch retrieve load download check inspect",
    "send": "send email mail post notify publish",
    "ask": "ask user",
    "delegate": "delegate helper subagent agent assistant task colleague",
    "add": "add sum plus total",
    "multiply": "multiply times product",
    "weather": "weather forecast temperature rain",
    "time": "time date clock today",
    "translate": "translate translation",
    "plan": "plan todo",
}
# These act on something: a tool that does it is only called when it is asked for.
ACTS = frozenset({"write", "delete", "move", "edit", "send", "delegate", "plan", "run"})

_NOT_VERBS = word_set(
    "mean median summary statistic stat analysis distribution many number total weather forecast "
    "temperature rain time date clock today helper agent assistant subagent task colleague times "
    "product plus translation todo ls calculator group"
)
VERBS = frozenset(
    word_set(" ".join(_GROUPS.values())) - _NOT_VERBS
    | word_set("make use give tell explain answer report call do prepare set test try finish")
)
_QUESTION = word_set("which what who how where when why is are does do did was were")
_DO_IT = re.compile(r"\W*do (?:an?|some|it|this|that|so)\b[^?]*$", re.IGNORECASE)
_STOP = word_set(
    "a an and are as at be by do for from give has have how i in is it its me my of on or our "
    "please short so than that the their them then there this to us was we were what which who "
    "with you your about all each every into not"
)

# adjective → (does more come first, the word of the quantity)
_ADJECTIVES = {
    "heav": (True, "mass weight"),
    "light": (False, "mass weight"),
    "long": (True, "length duration runtime"),
    "short": (False, "length height duration runtime"),
    "tall": (True, "height"),
    "deep": (True, "depth"),
    "wid": (True, "width"),
    "old": (True, "age year"),
    "young": (False, "age year"),
    "larg": (True, "size mass area count"),
    "big": (True, "size mass area count"),
    "small": (False, "size mass area count"),
    "expensiv": (True, "price cost"),
    "cheap": (False, "price cost"),
    "fast": (True, "speed"),
    "slow": (False, "speed"),
    "hot": (True, "temperature temp"),
    "warm": (True, "temperature temp"),
    "cold": (False, "temperature temp"),
    "cool": (False, "temperature temp"),
    "wind": (True, "wind"),
    "wet": (True, "precipitation rain rainfall"),
    "rain": (True, "precipitation rain rainfall"),
    "dr": (False, "precipitation rain rainfall"),  # driest
    "profitabl": (True, "profit margin"),
    "popular": (True, "count"),
    "populous": (True, "population"),
    "rich": (True, "income wealth gdp"),
    "poor": (False, "income wealth gdp"),
    "high": (True, ""),
    "low": (False, ""),
    "most": (True, ""),
    "least": (False, ""),
    "few": (False, ""),
    "common": (True, "count"),
    "frequent": (True, "count"),
    "rar": (False, "count"),
    "great": (True, ""),
    "best": (True, ""),
    "worst": (False, ""),
    "maximum": (True, ""),
    "minimum": (False, ""),
}
QUANTITIES = word_set(" ".join(quantity for _, quantity in _ADJECTIVES.values()))
_SUPERLATIVE = re.compile(
    r"\b(most|least|best|worst|maximum|minimum|rarest|commonest|[a-z]{3,10}est)\b", re.IGNORECASE
)
_SEPARATOR = re.compile(
    r",?\s+(?:and\s+)?then\s+|,\s+(?:and\s+)?(?:(?:then|finally|also)\s+)?|"
    r"\s+and\s+(?:(?:then|finally|also)\s+)?|\s+before\s+you\s+"
)
_SAYS_NOTHING = (
    r"for (?:example|instance)|of course|by the way|at first|from now on|(?:after|before) that|"
    r"in (?:general|addition|short|brief|detail|particular|(?:your|my|plain|other)(?: own)? words|"
    r"(?:one|two|three|a few) (?:words?|sentences?|lines?))"
)
_LEAD = re.compile(
    rf"^(?:(?:{_SAYS_NOTHING}),\s+|"
    r"(?:please|now|then|finally|first(?!\s+(?:\w+\s+)?(?:\d+|rows?)\b)|next|also|ok|okay|so|"
    r"and|hi|hello|hey)[,!]?\s+|"
    r"(?:can|could|would|will)\s+you\s+(?:please\s+|kindly\s+)?|kindly\s+|"
    r"i\s+(?:want|need)\s+you\s+to\s+|i(?:'d| would)\s+like\s+you\s+to\s+|"
    r"i(?:(?:'d| would)\s+(?:like|love)|\s+(?:want|need))\s+to\s+(?=see\b)|"
    r"(?:i(?:(?:'d| would)\s+(?:like|love)|\s+(?:want|need))\s+to\s+know|do\s+you\s+know|"
    r"i\s+wonder|i(?:'m| am)\s+wondering)\s+(?!if\b|whether\b)|"
    r"let(?:'s| us)\s+|you\s+should\s+|"
    # How a task is told to a sub-agent, and a question to anybody.
    r"(?:(?:your|the)\s+)?task(?:\s+is)?(?::|\s+to\b)\s*|"
    r"(?:find(?:\s+out)?|tell\s+(?:me|us)|work\s+out|figure\s+out|determine)\s+"
    r"(?=(?:which|what|who|how\s+(?:many|much))\b(?!\s+files?\b)))+",
    re.IGNORECASE,
)
_LEAVING_OUT = re.compile(
    r"^\s*(?:except(?:ing)?|excluding|apart\s+from|besides|without|leaving\s+out|other\s+than)\b[^,]*$",
    re.IGNORECASE,
)
# "Of the lakes in Lapland, which is deepest", "For each lake, what is the mean depth".
_RESTRICTING = re.compile(
    r"^\s*(?:of|among(?:st)?|in|for|from|within|during|on|at|between|by|per|across|since|after|"
    r"before|until)\b[^,]*$",
    re.IGNORECASE,
)
# Where a store is a shop by which something is grouped.
_BY = re.compile(r"\b(?:by|per|each|every)\s+\w+$", re.IGNORECASE)
_SHOP = re.compile(r"stores?(?:$|\W*$|\s+(?:in|of|for|from)\b)", re.IGNORECASE)
_PLEASE = re.compile(
    r",?\s+(?:please|pls|plz|now|for me|thanks|thank you|thx|many thanks|cheers|"
    r"and (?:return|report)(?: back)?"
    r"(?: (?:it|both|them|(?:only )?the \w+|a (?:short |brief )?(?:summary|table)))?)$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:^|(?<=\s))(\d{1,2})[.)]\s+(?=[A-Za-z])")
_QUOTED_BELOW = re.compile(r":[^\S\n]*\n\s*(?=\x00\d+\x00[ \t.]*(?:\n|$))")  # "Write this:" "…"
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+", re.MULTILINE)
_PLAN = re.compile(
    r"^(?:(?:make|write|create|prepare|draw up|start with|use|keep)\s+)?(?:me\s+)?"
    r"(?:a|an|the|your)?\s*(?:short|brief|quick|small|simple)?\s*"
    r"(?:plan|to-?do(?:\s+list|s)?|todos?)\b(?!\w)",
    re.IGNORECASE,
)
DELEGATES = re.compile(
    r"^(?:delegate\b|hand\b.*\bover\b|(?:ask|have|let|tell|use)\s+(?:an?|the|another|your|my)\s+"
    r"(?:[\w-]+\s+)?(?:helper|sub-?agent|agent|assistant|colleague|worker)\b)",
    re.IGNORECASE,
)
# What takes a language model to write, or eyes to see.
_CODE = re.compile(
    r"^(?:write|create|make|implement|define|generate|give|code|add|insert)\s+(?:me\s+|us\s+)?"
    r"(?:(?:an?|some|another)\s+)?(?:(?!the\b)[\w-]+\s+){0,3}?"
    r"(?:functions?|class(?:es)?|methods?|scripts?|programs?|decorators?|tests?|regex|lambda|"
    r"generator|loop|module|code|snippet|algorithm)\b"
    r"(?=\s*(?:$|[,.:/]|(?:that|which|to|for|of|in|with|called|named|\w+ing)\b))",
    re.IGNORECASE,
)
_PROSE = re.compile(
    r"^(?:write|create|make|generate|give|compose|draft|tell)\s+(?:me\s+|us\s+)?"
    r"(?:(?:an?|some|another)\s+)?(?:(?!the\b)[\w-]+\s+){0,2}?"
    r"(?:poems?|haikus?|story|stories|essays?|e-?mails?|letters?|jokes?|songs?|blog posts?|"
    r"articles?|tweets?|speech|lyrics)\b(?=\s*(?:$|[,.:]|(?:about|on|for|to|of|in|that|which)\b))",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"\battached image \d+ \(")
THANKS = re.compile(r"^(?:thanks?(?:\s+you)?|thx|great|nice|cool)\b", re.IGNORECASE)
_ABOUT = re.compile(r"^(?:what can you do|who are you|what are you|help|please)\W*$", re.IGNORECASE)
_TALK = re.compile(
    r"^(?:hi|hello|hey|thanks?(?:\s+you)?|thx|good (?:morning|day|evening)|great|ok(?:ay)?|yes|no|"
    r"nice|cool|bye)\b[^?]{0,20}$",
    re.IGNORECASE,
)
STOP = re.compile(
    r"^(?:stop|never ?mind|cancel(?: that| it| the rest)?|forget it)\b", re.IGNORECASE
)


def fenced_apart(text: str) -> tuple[str, list[str]]:
    r"""A prompt without its fenced blocks, and what stands in these.

    >>> fenced_apart("Run this:\n```python\ndelete x\n```\nand count")
    ('Run this:\n\nand count', ['delete x'])
    """
    found = [(match["inside"] or "").removesuffix("\n") for match in _FENCED.finditer(text)]
    return _FENCED.sub("", text), found


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A word without its ending, so that forms of one word are equal.

    >>> stem("averages") == stem("average"), stem("counting"), stem("species")
    (True, 'count', 'speci')
    """
    word = word.lower()
    for ending, instead in (("ies", "i"), ("iest", ""), ("ing", ""), ("est", ""), ("ed", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + instead
            break
    else:
        word = word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word
        if len(word) > 3 and word.endswith("y") and word[-2] not in "aeiou":
            return word[:-1] + "i"  # as of cities
    return word.removesuffix("e") if len(word) > 3 else word


_GROUP_OF = {stem(word): group for group, words in _GROUPS.items() for word in words.split()}


def words(text: str) -> list[str]:
    """The words of a text in lower case; identifiers fall apart into theirs."""
    return [w.lower() for w in WORD.findall(re.sub(r"([a-z])([A-Z])", r"\1 \2", text))]


def stems(text: str) -> set[str]:
    """The stems of the words that carry meaning."""
    return {stem(word) for word in words(text) if word not in _STOP}


def groups(stemmed: Iterable[str]) -> set[str]:
    """What those words ask for, or offer: names such as "read" or "count"."""
    return {_GROUP_OF[s] for s in stemmed if s in _GROUP_OF}


def first_verb(text: str) -> str:
    """The first word that is a verb, "" without one."""
    return next((word for word in words(unquoted(text)) if word in VERBS), "")


def own_verb(text: str) -> str:
    """The first word where it may be a verb that is not known here, "" otherwise.

    >>> own_verb("ship the lamp"), own_verb("write a note"), own_verb("the lamp")
    ('ship', '', '')
    """
    first = next(iter(words(unquoted(text))), "")
    return "" if first in VERBS | _STOP | _QUESTION or groups([stem(first)]) else first


def quoted(text: str) -> list[str]:
    """The texts in quotation marks or backticks."""
    return [next(g for g in m.groups() if g is not None) for m in QUOTED.finditer(text)]


def unquoted(text: str) -> str:
    """The text without what is quoted."""
    return QUOTED.sub(" ", text)


def superlative(text: str) -> tuple[str, bool, list[str]] | None:
    """The superlative of a text: ``(word, does more come first, words of the quantity)``.

    >>> superlative("Which species is the heaviest?")
    ('heaviest', True, ['mass', 'weight'])
    """
    for match in _SUPERLATIVE.finditer(unquoted(text)):
        word = match[0].lower()
        if known := adjective(word):
            return word, *known
    return None


def adjective(word: str) -> tuple[bool, list[str]] | None:
    """Of an adjective in any degree, whether more of its quantity is meant, and the quantity.

    >>> adjective("older"), adjective("shortest"), adjective("blue")
    ((True, ['age', 'year']), (False, ['length', 'height', 'duration', 'runtime']), None)
    """
    for candidate in (word, stem(word), stem(stem(word) + "y"), stem(word.removesuffix("er"))):
        for known, (more, quantity) in _ADJECTIVES.items():
            # "larg" and "larger", "bigg" and "big"
            if candidate == known or candidate.rstrip("iy") == known:
                return more, quantity.split()
            if candidate[:-1] == known and candidate[-1:] == candidate[-2:-1]:
                return more, quantity.split()
    return None


def is_question(text: str) -> bool:
    """Whether a clause asks something.

    >>> is_question("In 2020, how many lakes are there"), is_question("in 2020, show the lakes")
    (True, False)
    >>> is_question("Do two lakes freeze"), is_question("Do a t-test")
    (True, False)
    """
    lead, comma, rest = text.partition(",")
    if comma and (_LEAVING_OUT.match(lead) or _RESTRICTING.match(lead)):
        text = rest
    first = (words(text) or [""])[0]
    if _DO_IT.match(text):
        return False
    return first in _QUESTION or (text.rstrip().endswith("?") and first not in VERBS)


def after_plan(text: str) -> str:
    """What stands behind the words that only ask for a plan, where it is said with them.

    >>> after_plan("Make a to-do list: load the data"), after_plan("Plan a trip")
    ('load the data', 'Plan a trip')
    """
    plan, colon, rest = text.partition(":")
    return rest.strip() if colon and rest.strip() and is_plan(plan) else text


def is_plan(text: str) -> bool:
    """Whether a clause only asks for a plan."""
    return bool(_PLAN.match(_LEAD.sub("", text.strip())))


def is_code(text: str) -> bool:
    """Whether a clause asks for code to be written, and gives none itself.

    >>> is_code("Write a function that computes the mean"), is_code("write the code to /x.py")
    (True, False)
    """
    return bool(_CODE.match(text)) and not re.search(r"[\"“]", text)


def is_prose(text: str) -> bool:
    """Whether a clause asks for a text to be thought up, and gives none itself.

    >>> is_prose("Write a short poem about lakes"), is_prose("write a report about lakes")
    (True, False)
    """
    return bool(_PROSE.match(text)) and not re.search(r"[\"“]", text)


def is_of_image(text: str) -> bool:
    """Whether a clause is about an image that a notebook attaches."""
    return bool(_IMAGE.search(text))


def is_talk(text: str) -> bool:
    """Whether a clause is a greeting, thanks, or a question about the model."""
    return bool(_TALK.match(text.strip()) or _ABOUT.match(text.strip()))


_AHEAD = 400  # characters in which the first two words of a clause stand


def clauses(text: str) -> list[str]:
    """The parts of a prompt that each ask for one thing, without "please" and the like.

    >>> clauses("Which is best? Please count the rows, and save 'a, b.' to /x.md")
    ['Which is best?', 'count the rows', "save 'a, b.' to /x.md"]
    """
    kept: list[str] = []

    def hide(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\x00{len(kept) - 1}\x00"

    # Quotes first: what is quoted may look like a path or a list, and a dot in a path ends nothing.
    hidden = QUOTED.sub(hide, text.replace("\x00", " "))
    if [int(n) for n in _NUMBERED.findall(hidden)][:2] == [1, 2]:
        hidden = _NUMBERED.sub("\n", hidden)  # "1. count the rows 2. write a summary"
    hidden = _QUOTED_BELOW.sub(": ", hidden)
    hidden = PATH.sub(hide, _BULLET.sub("\n", hidden))
    parts: list[str] = []
    for sentence in re.split(r"(?<=[.!?])\s+|[\n;]+", hidden):
        sentence = sentence.strip()
        begin, lead, prefix = 0, "", ""
        for separator in _SEPARATOR.finditer(sentence):
            ahead = sentence[separator.end() : separator.end() + _AHEAD]
            following = words(_LEAD.sub("", ahead))[:2]
            asks = following[:1] and following[0] in ("which", "how", "what", "who")
            asks = asks or following in (["are", "there"], ["is", "there"])
            then = "then" in words(separator[0])
            before = sentence[begin : separator.start()]
            if _LEAVING_OUT.match(before) or (_RESTRICTING.match(before) and not then):
                lead = f"{before}, "
                continue  # "Except for Oslo, which is largest": it is a part of what follows
            if _LEAD.fullmatch(f"{before} "):
                begin = separator.end()  # "And then": the first word asks for nothing
            elif _BY.search(before) and _SHOP.match(ahead):
                continue  # "by weekday and store"
            elif following and (then or following[0] in VERBS or asks):
                parts.append(prefix + before)
                begin = separator.end()
                prefix = lead if asks else ""  # "In 2020, how many are there and which is largest"
        parts.append(prefix + sentence[begin:])

    def restore(part: str) -> str:
        while "\x00" in part:
            part = re.sub("\x00(\\d+)\x00", lambda m: kept[int(m[1])], part)
        return part

    found = []
    for part in parts:
        bare = _LEAD.sub("", part.strip().rstrip(".!,").strip())
        bare = _PLEASE.sub("", bare)
        if bare:
            found.append(restore(bare))
    return found

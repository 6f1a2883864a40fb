// Markdown that no person writes: what parsers are slow at, or lose their stack over.

export type Shape = { name: string; make: (size: number) => string };

/** What is said again and again, in one line and as a line of its own. */
const UNITS = [
  ">", "> ", ">>>> ", "- ", "* ", "+ ", "1. ", "1) ", "- > ", "> - ", "> 1. ", "1. > ", "- - ", "- [ ] ", "- [x] - ", ">- ", "-\t", ">\t", "    ", "\t",
  "*", "**", "***", "_", "__", "~", "~~", "`", "``", "*a ", "**a ", "_a ", "__a ", "~~a ", "a*", "a**", "a_", "a __a", "*a_ ", "**a*", "*a**b", "***a* ",
  "*a_b~~", "**x** ", "*x*", "_x_ ", "~~x~~", "`x` ", "`x", "``x` ", "\\", "\\*", "\\`", "a**b", "c* ", "*_", "_*", "~*", "*(", ")*",
  "[", "]", "[]", "[a", "[a]", "[a](", "[a](b", "[a](b)", "[a](<", "[a](<b", "![", "![a](", "![a](b)", "![[]()", "[![", "[a][", "[a][b]", "[a]: b", "[a]: <b> (",
  "[[]", "[](", "[\\", "[`", "[<", "[a](b \"", "[^1]", "[^1]: a", "((", "(a", "[](()", "[a](((",
  "<", "</", "<a", "<a>", "</a>", "<b><i>", "<!--", "<!-- -->", "<?", "<?a?>", "<!A", "<![CDATA[", "<a b=", "<a b=\"", "<div>", "</div>", "<pre>", "<code>",
  "<script>", "<details>", "<table><tr><td>", "<ul><li>", "<blockquote>", "<span>", "<sub>", "<a href=x>", "<p", "<p a=''", "<h1>", "<svg><", "<math>", "<a@b.c>", "<http://a",
  "|", "| ", "|-", "|a|b", "| - ", "a|", "\\|", "|-|\n", "a|b\n-|-\n", "|:-:", "#", "# ", "###### ", "a #", "=", "---", "***\n", "- - -\n", "a\n=", "a\n-\n",
  "&", "&#", "&#35;", "&amp;", "&x", "http://", "http://a.", "https://a.b/", "www.", "www.a.", "www.a.b)", "a@b.c ", "a@", "@", "mailto:", "mailto:a@b.", "a.b@c.d-", "http://a(", "ftp://",
  "a", "a ", " ", "  \n", "\\\n", "\u00a0", "\u202e", "é", "🐧", "\u0000", "\u0301", "\ud83d", "```", "```\n", "~~~\n", "````\n```\n", "$", "$$", "$a", "$a ", "$a$", "$a$1", "\\(a", "\\[", "$$\na", "$$a$$\n", "{", "}", "\"", "'", "!", ".", ",", ":", "::", "0", "a\n", "a\n\n", "\n", " \n", "-\n", ">\n", "1.\n", "+\n\n",
];

/** What opens and closes: as many of the one as of the other, round one letter. */
const PAIRS: [string, string][] = [
  ["*", "*"], ["**", "**"], ["_", "_"], ["~~", "~~"], ["*a ", " a*"], ["**a ", " a**"], ["*_", "_*"], ["*a **b ", " b** a*"], ["_a *b ", " b* a_"], ["~~a *b ", " b* a~~"],
  ["[", "]"], ["[", "](b)"], ["![", "](b)"], ["[a ", "][b]"], ["![", "][b]"], ["[![", "](b)](c)"], ["(", ")"], ["$", "$"], ["$$", "$$"], ["\\(", "\\)"], ["<", ">"], ["`", "`"], ["`a ``", "`` a`"], ["\\[", "\\]"], ["[*", "*](b)"],
  ["<b>", "</b>"], ["<div>", "</div>"], ["<div>\n\n", "\n\n</div>"], ["<details><summary>a</summary>\n\n", "</details>\n\n"], ["<ul><li>", "</li></ul>"], ["<table><tr><td>", "</td></tr></table>"],
  ["<blockquote>", "</blockquote>"], ["<span class=\"hljs\">", "</span>"], ["<pre><code>", "</code></pre>"], ["<!--", "-->"], ["<svg>", "</svg>"], ["<math><mtext>", "</mtext></math>"],
];

/** A line at each depth, ever deeper. */
const STEPS: [string, string, string][] = [
  ["items", "  ", "- a\n"], ["numbers", "   ", "1. a\n"], ["items apart", "  ", "- a\n\n"], ["empty items", "  ", "-\n"], ["quotes", ">", " a\n"], ["quotes apart", "> ", "a\n>\n"], ["items in tabs", "\t", "- a\n"],
  ["code", " ", "```\n"], ["quoted items", "> ", "- a\n"], ["spaces", " ", "a\n"], ["tables", " ", "a|b\n"], ["headings", "> ", "# a\n"], ["ends of HTML", "  ", "</div>\n"], ["links", "[", "\n"], ["rules", " ", "---\n"],
];

const TAILS = ["- a", "> a", "1. a", "a", "| a | b |", "<div>", "[a]: b", "    a", "```", "# a"];

const fill = (unit: string, size: number) => unit.repeat(Math.max(1, Math.floor(size / unit.length)));

function stair([, indent, line]: (typeof STEPS)[number], size: number): string {
  let text = "";
  for (let depth = 0; text.length < size; depth++) text += indent.repeat(depth) + line;
  return text;
}

export const shapes: Shape[] = [
  ...UNITS.flatMap((unit): Shape[] => [
    { name: `${JSON.stringify(unit)} over and over`, make: (size) => `${fill(unit, size)}x` },
    { name: `${JSON.stringify(unit)} on every line`, make: (size) => fill(`${unit}x\n`, size) },
    { name: `${JSON.stringify(unit)}, and a text with ends`, make: (size) => `${fill(unit, size / 2)}${fill("x* y_ ~~z ](u) ` </b> --> \n", size / 2)}` },
  ]),
  ...PAIRS.flatMap(([open, close]): Shape[] => [
    {
      name: `${JSON.stringify(open + close)} in each other`,
      make: (size) => {
        const times = Math.max(1, Math.floor(size / (open.length + close.length)));
        return `${open.repeat(times)}x${close.repeat(times)}`;
      },
    },
    { name: `${JSON.stringify(open)} many, ${JSON.stringify(close)} few`, make: (size) => `${fill(open, size)}x${close.repeat(9)}` },
    { name: `${JSON.stringify(`${open}x${close}`)} one after the other`, make: (size) => fill(`${open}x${close} `, size) },
  ]),
  ...TAILS.map((line): Shape => ({ name: `a long ${JSON.stringify(line)} before many lines`, make: (size) => `${line}${fill("a- ", size / 2)}\n${fill("b\n", size / 2)}` })),
  ...TAILS.map((line): Shape => ({ name: `${JSON.stringify(line)} and many lines that go on`, make: (size) => `${line}\n${fill("  b *c\n", size)}` })),
  ...TAILS.map((line): Shape => ({ name: `${JSON.stringify(line)} on lines apart`, make: (size) => fill(`${line}\n\n`, size) })),
  ...STEPS.flatMap((step): Shape[] => [
    { name: `stairs of ${step[0]}`, make: (size) => stair(step, size) },
    { name: `stairs of ${step[0]}, again and again`, make: (size) => fill(`${stair(step, 300)}\n`, size) },
  ]),
];

// The HTML a model's markdown came to is foreign: only what is listed here gets into the page.
// The result is sanitised, not the markdown, because that is what the browser will see.
import createDOMPurify from "dompurify";

const TAGS =
  "a b blockquote br code del details em h1 h2 h3 h4 h5 h6 hr i img kbd li ol p pre s span strong sub summary sup table tbody td tfoot th thead tr ul";
const ATTRIBUTES = "align alt class colspan href open rowspan src start title";

const purify = createDOMPurify(window);

purify.addHook("afterSanitizeAttributes", (node) => {
  // Colours of code are all a class may ask for: ours and the host's could fake a button.
  const colours = (node.getAttribute("class") ?? "").split(/\s+/).filter((c) => /^hljs(-[\w-]+)?_?$/.test(c));
  if (colours.length > 0) node.setAttribute("class", colours.join(" "));
  else node.removeAttribute("class");

  if (node.nodeName === "A") linkOnlyOutside(node);
  if (node.nodeName === "IMG") showOnlyData(node);
});

/** Where links led that lead nowhere now: it may be to one of the conversation's files. */
export const targets = new WeakMap<Element, string>();

function linkOnlyOutside(link: Element): void {
  const href = link.getAttribute("href") ?? "";
  // "https:x" without slashes is relative to the page, so it is not let through either.
  if (!/^(https?:\/\/|mailto:)/i.test(href)) {
    link.removeAttribute("href");
    targets.set(link, href);
    return;
  }
  link.setAttribute("rel", "noopener noreferrer");
  link.setAttribute("target", "_blank");
}

/** An image from elsewhere would tell its server what the model knows, by its very address. */
function showOnlyData(image: Element): void {
  const source = image.getAttribute("src") ?? "";
  if (/^data:image\/(png|jpe?g|gif|webp);base64,[a-z0-9+/=\s]*$/i.test(source)) return;
  const link = image.ownerDocument.createElement("a");
  link.setAttribute("href", source);
  linkOnlyOutside(link);
  link.textContent = source || image.getAttribute("alt") || "image";
  image.replaceWith(link);
}

// One object: DOMPurify reads another one anew each time.
const CONFIG = {
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ATTRIBUTES.split(" "),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOW_UNKNOWN_PROTOCOLS: false,
  RETURN_DOM_FRAGMENT: true as const,
};

/**
 * What begins anything but one of these tags without an attribute. HTML without it is text and
 * plain elements, whatever a parser makes of it, so the most of what models write is safe as it is.
 */
const FOREIGN = /<(?!\/?(?:p|strong|em|code|ul|ol|li|h[1-6]|br|hr|del|blockquote|table|thead|tbody|tr|th|td)>)/;

/** `html` as nodes that are safe to put into the page. */
export function sanitize(html: string): DocumentFragment {
  // Null where a <frameset> has taken the place of the body: then as the text that it was.
  if (FOREIGN.test(html)) return purify.sanitize(html, CONFIG) ?? Object.assign(new DocumentFragment(), { textContent: html });
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

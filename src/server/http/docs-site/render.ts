/** Markdown of the documentation as HTML. The page shows tags in the Markdown as text. */
import hljs from "highlight.js/lib/core"
import bash from "highlight.js/lib/languages/bash"
import json from "highlight.js/lib/languages/json"
import typescript from "highlight.js/lib/languages/typescript"
import xml from "highlight.js/lib/languages/xml"
import { Marked, type Tokens } from "marked"

hljs.registerLanguage("bash", bash)
hljs.registerLanguage("json", json)
hljs.registerLanguage("typescript", typescript)
hljs.registerLanguage("xml", xml)

const languages: Readonly<Record<string, string>> = {
  bash: "bash",
  html: "xml",
  js: "typescript",
  json: "json",
  jsonc: "json",
  jsx: "typescript",
  sh: "bash",
  ts: "typescript",
  tsx: "typescript"
}

/** A heading with what stands below it, up to the next one: the unit of the search. */
export interface Section {
  readonly id: string
  readonly heading: string
  readonly text: string
}

/** A page without the frame around it. */
export interface RenderedPage {
  readonly title: string
  readonly html: string
  readonly headings: ReadonlyArray<{ readonly id: string; readonly text: string }>
  readonly sections: ReadonlyArray<Section>
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;"
}

/** Text between tags or in an attribute. */
export const escapeText = (text: string): string =>
  text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? character)

const unescape = (html: string): string =>
  Object.entries(entities)
    .toReversed()
    .reduce((text, [character, entity]) => text.replaceAll(entity, character), html)
    .replaceAll("&#39;", "'")

const textOf = (html: string): string =>
  unescape(
    html.replaceAll(/<\/?(?:a|code|em|span|strong)\b[^>]*>/g, "").replaceAll(/<[^>]*>/g, " ")
  )
    .replaceAll(/\s+/g, " ")
    .trim()

/** The id of a heading, as other renderers of Markdown derive it. */
const anchorOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-")

const highlighted = (text: string, language: string | undefined): string => {
  const known = languages[language ?? ""]
  return known === undefined
    ? escapeText(text)
    : hljs.highlight(text, { language: known, ignoreIllegals: true }).value
}

/** Resolves the target of a link or image of a page; undefined if it leads nowhere. */
type Resolve = (link: string) => string | undefined

const rendererWith = (resolve: Resolve, headings: Array<RenderedPage["headings"][number]>) => ({
  html: ({ text }: Tokens.HTML | Tokens.Tag): string => escapeText(text),
  code: ({ lang, text }: Tokens.Code): string =>
    `<pre tabindex="0"><code>${highlighted(text, lang)}</code></pre>\n`,
  image: ({ href, text }: Tokens.Image): string => {
    const source = resolve(href)
    return source === undefined || /^https?:/.test(source)
      ? escapeText(text)
      : `<img src="${escapeText(source)}" alt="${escapeText(text)}" loading="lazy">`
  },
  heading(this: HasParser, { depth, tokens }: Tokens.Heading): string {
    const html = this.parser.parseInline(tokens)
    const text = textOf(html)
    const id = anchorOf(text)
    if (depth === 2) headings.push({ id, text })
    return `<h${depth} id="${escapeText(id)}">${html}</h${depth}>\n`
  },
  link(this: HasParser, { href, tokens }: Tokens.Link): string {
    const html = this.parser.parseInline(tokens)
    const target = resolve(href)
    return target === undefined ? html : `<a href="${escapeText(target)}">${html}</a>`
  }
})

interface HasParser {
  readonly parser: { readonly parseInline: (tokens: Array<Tokens.Generic>) => string }
}

const headingForm = /^<h[1-6] id="([^"]*)">(.*?)<\/h[1-6]>/

const sectionsOf = (html: string): ReadonlyArray<Section> =>
  html.split(/(?=<h[1-6] id=)/).flatMap((piece) => {
    const [whole, id = "", heading = ""] = headingForm.exec(piece) ?? []
    if (whole === undefined) return []
    return [{ id, heading: textOf(heading), text: textOf(piece.slice(whole.length)) }]
  })

/** Renders a page. Wide tables scroll on their own. */
export const render = (markdown: string, resolve: Resolve): RenderedPage => {
  const headings: Array<RenderedPage["headings"][number]> = []
  const marked = new Marked({ renderer: rendererWith(resolve, headings), async: false, gfm: true })
  const html = String(marked.parse(markdown))
    .replaceAll("<table>", '<div class="wide" tabindex="0"><table>')
    .replaceAll("</table>", "</table></div>")
  const sections = sectionsOf(html)
  return { title: sections[0]?.heading ?? "", html, headings, sections }
}

/** The frame of every page: navigation, search, contents of the page, neighbours. */
import { paths } from "#rpc/paths"
import { escapeText, type RenderedPage } from "./render.ts"

/** Addresses of the files that all pages load. */
export const assets = {
  script: `${paths.docs}/-/site.js`,
  search: `${paths.docs}/-/search.json`,
  style: `${paths.docs}/-/site.css`
} as const

/** An entry of the navigation. */
export interface NavLink {
  readonly title: string
  readonly url: string
}

/** A part of the navigation. */
export interface NavPart {
  readonly title: string
  readonly links: ReadonlyArray<NavLink>
}

/** Links to what the service serves beside the pages. */
export const references: ReadonlyArray<NavLink> = [
  { title: "HTTP API and frames", url: paths.apiPage },
  { title: "OpenAPI document", url: paths.openapi },
  { title: "AsyncAPI document", url: paths.asyncapi },
  { title: "Schema of the config", url: paths.configSchema }
]

const linkTo = ({ title, url }: NavLink, current: string): string =>
  `<li><a href="${url}"${url === current ? ' aria-current="page"' : ""}>${escapeText(title)}</a></li>`

const navigation = (parts: ReadonlyArray<NavPart>, current: string): string =>
  parts
    .map(
      ({ links, title }) =>
        `<h2>${escapeText(title)}</h2><ul>${links.map((link) => linkTo(link, current)).join("")}</ul>`
    )
    .join("")

/** Links to the sections of a long page. */
const contents = (headings: RenderedPage["headings"]): string =>
  headings.length < 3
    ? ""
    : `<aside aria-labelledby="contents"><h2 id="contents">On this page</h2><ul>${headings
        .map(({ id, text }) => `<li><a href="#${escapeText(id)}">${escapeText(text)}</a></li>`)
        .join("")}</ul></aside>`

const neighbours = (parts: ReadonlyArray<NavPart>, current: string): string => {
  const all = parts.flatMap(({ links }) => links)
  const index = all.findIndex(({ url }) => url === current)
  if (index === -1) return ""
  const link = (at: number, rel: "next" | "prev", text: string): string => {
    const found = all[at]
    if (found === undefined) return ""
    return `<a rel="${rel}" href="${found.url}"><small>${text}</small>${escapeText(found.title)}</a>`
  }
  const links = link(index - 1, "prev", "Before") + link(index + 1, "next", "Next")
  return `<nav class="near" aria-label="Neighbouring pages">${links}</nav>`
}

/** Returns the line that names the repository file of a page. */
const sourceOf = (path: string | undefined): string =>
  path === undefined
    ? ""
    : `<p class="source">To change this page, edit <code>${escapeText(path)}</code> in the repository.</p>`

/** Returns a page of the site. */
export const pageText = (
  { headings, html, title }: Pick<RenderedPage, "headings" | "html" | "title">,
  current: string,
  parts: ReadonlyArray<NavPart>,
  source?: string
): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8">` +
  `<title>${escapeText(title)} - Player backend</title>` +
  `<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">` +
  `<link rel="stylesheet" href="${assets.style}"><script src="${assets.script}"></script></head><body>` +
  `<a class="skip" href="#main">Skip to the content</a>` +
  `<header><a class="brand" href="${paths.docs}">Player backend</a>` +
  `<search><input type="search" placeholder="Search (press /)" aria-label="Search the documentation" ` +
  `autocomplete="off"><div id="results" role="status" hidden></div></search>` +
  `<button type="button" id="theme" aria-label="Switch between light and dark">◐</button>` +
  `<button type="button" id="menu" aria-expanded="false" aria-controls="pages">Menu</button></header>` +
  `<nav id="pages" aria-label="Pages">${navigation(parts, current)}</nav>` +
  `<main id="main" tabindex="-1">${html}${neighbours(parts, current)}${sourceOf(source)}</main>` +
  `${contents(headings)}</body></html>`

/** All pages, images and assets of the site, rendered and compressed once. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { setImmediate } from "node:timers/promises"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { itemsOf, member, membersOf, textOf } from "#rpc/openapi/json"
import { paths } from "#rpc/paths"
import { apiDocument } from "../api-page/document.ts"
import { assets, type NavPart, pageText, references } from "./layout.ts"
import { render, type RenderedPage, type Section } from "./render.ts"
import { imageFiles, navigation, pageFiles, read, resolveLink, type SourceFile } from "./sources.ts"
import { themeScript, tokens } from "../look/tokens.ts"

/** A response of the site. */
export interface SiteFile {
  readonly type: string
  readonly body: Uint8Array
  /** Compressed bytes; undefined for an image, which does not get smaller. */
  readonly gzipped: Uint8Array | undefined
  readonly etag: string
}

/** The files by path, and the page for paths that there are not. */
export interface Site {
  readonly files: ReadonlyMap<string, SiteFile>
  readonly missing: SiteFile
}

const compress = promisify(gzip)

const html = "text/html; charset=utf-8"

const fileOf = async (type: string, content: string | Uint8Array): Promise<SiteFile> => {
  const body = typeof content === "string" ? new TextEncoder().encode(content) : content
  const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`
  const isText = typeof content === "string"
  return { type, body, etag, gzipped: isText ? new Uint8Array(await compress(body)) : undefined }
}

/** An entry of the search index. */
interface Entry {
  readonly title: string
  readonly heading: string
  readonly text: string
  readonly url: string
}

const entriesOf = (title: string, url: string, sections: ReadonlyArray<Section>) =>
  sections.map(({ heading, id, text }, index): Entry => {
    return { title, heading, text, url: index === 0 ? url : `${url}#${id}` }
  })

/** The endpoints, which the search finds, too. */
const endpointEntries = (): ReadonlyArray<Entry> =>
  membersOf(apiDocument()["paths"]).flatMap(([path, methods]) =>
    membersOf(methods).map(([method, operation]) => ({
      title: itemsOf(member(operation, "tags")).map(textOf).join(", "),
      heading: `${method.toUpperCase()} ${path}`,
      text: textOf(member(operation, "summary")),
      url: `${paths.apiPage}#${textOf(member(operation, "operationId"))}`
    }))
  )

interface Rendered extends SourceFile {
  readonly page: RenderedPage
}

/** Renders one page in each turn of the event loop: players of this process must not wait for readers. */
const renderAll = async (sources: ReadonlyArray<SourceFile>): Promise<ReadonlyArray<Rendered>> => {
  const addresses = new Map([...sources, ...imageFiles()].map(({ path, url }) => [path, url]))
  const rendered: Array<Rendered> = []
  for (const source of sources) {
    const resolve = (link: string) => resolveLink(link, source.path, addresses)
    rendered.push({ ...source, page: render(read(source.path).toString(), resolve) })
    await setImmediate()
  }
  return rendered
}

const partsOf = (rendered: ReadonlyArray<Rendered>): ReadonlyArray<NavPart> => {
  const titles = new Map(rendered.map(({ page, path }) => [path, page.title]))
  return navigation(rendered).map(({ pages, title }) => {
    const links = pages.map(({ path, url }) => ({ title: titles.get(path) ?? path, url }))
    return { title, links: title === "Reference" ? [...references, ...links] : links }
  })
}

const asset = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8")

/** Builds the site. */
export const buildSite = async (): Promise<Site> => {
  const rendered = await renderAll(pageFiles())
  const parts = partsOf(rendered)
  const index = [
    ...rendered.flatMap(({ page, url }) => entriesOf(page.title, url, page.sections)),
    ...endpointEntries()
  ]
  const style = tokens + asset("site.css")
  const script = themeScript + asset("site.js")
  const files = new Map<string, SiteFile>([
    [assets.style, await fileOf("text/css; charset=utf-8", style)],
    [assets.script, await fileOf("text/javascript; charset=utf-8", script)],
    [assets.search, await fileOf("application/json", JSON.stringify(index))]
  ])
  for (const { page, path, url } of rendered) {
    files.set(url, await fileOf(html, pageText(page, url, parts, path)))
  }
  for (const { path, type, url } of imageFiles()) files.set(url, await fileOf(type, read(path)))
  const lost =
    `<h1>Page not found</h1><p>There is no page at this address. Search above, or go to the ` +
    `<a href="${paths.docs}">list of all pages</a>.</p>`
  const page = { title: "Page not found", html: lost, headings: [] }
  return { files, missing: await fileOf(html, pageText(page, "", parts)) }
}

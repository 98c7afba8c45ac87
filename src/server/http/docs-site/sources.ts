/** Files of the documentation: which Markdown files are pages, their addresses and their order. */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, extname, join, normalize } from "node:path"
import { fileURLToPath } from "node:url"
import { paths } from "#rpc/paths"

const root = fileURLToPath(new URL("../../../..", import.meta.url))

/** The page that lists all others: their order in the navigation is its order of links. */
const contents = "docs/README.md"

/** Pages outside of `docs`, with their addresses. */
const elsewhere: Readonly<Record<string, string>> = {
  "rpc/authorization.md": `${paths.docs}/authorization`,
  "CHANGELOG.md": `${paths.docs}/changelog`
}

const imageTypes: Readonly<Record<string, string>> = {
  ".jpg": "image/jpeg",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webp": "image/webp"
}

/** A part of the navigation: single pages, then those of a folder. */
interface Part {
  readonly title: string
  readonly pages: ReadonlyArray<string>
  readonly folder?: string
}

const parts: ReadonlyArray<Part> = [
  { title: "Start", pages: [contents, "docs/tutorial.md", "docs/compared-with.md"] },
  { title: "Guides", pages: [], folder: "docs/guides/" },
  { title: "Operations", pages: [], folder: "docs/operations/" },
  { title: "Reference", pages: ["rpc/authorization.md", "CHANGELOG.md"], folder: "docs/packages/" },
  { title: "The code", pages: [] }
]

/** A file with its address on the site. */
export interface SourceFile {
  /** Path in the repository: `docs/guides/rooms.md`. */
  readonly path: string
  readonly url: string
}

const urlOf = (path: string): string => {
  const known = elsewhere[path]
  if (known !== undefined) return known
  if (path === contents) return paths.docs
  return `${paths.docs}/${path.slice("docs/".length).replace(/\.md$/, "")}`
}

const withUrl = (path: string): SourceFile => ({ path, url: urlOf(path) })

const found = (pattern: string): ReadonlyArray<string> =>
  globSync(pattern, { cwd: root }).map((path) => path.replaceAll("\\", "/"))

/** Lists all pages. */
export const pageFiles = (): ReadonlyArray<SourceFile> =>
  [...found("docs/**/*.md"), ...Object.keys(elsewhere)]
    .filter((path) => existsSync(join(root, path)))
    .map(withUrl)

/** All images, with their media types. */
export const imageFiles = (): ReadonlyArray<SourceFile & { readonly type: string }> =>
  found("docs/**/*.*").flatMap((path) => {
    const type = imageTypes[extname(path)]
    return type === undefined ? [] : [{ ...withUrl(path), type }]
  })

/** The content of a file of the documentation. */
export const read = (path: string): Buffer => readFileSync(join(root, path))

/** The parts of the navigation with their pages. A page of no other part is about the code. */
export const navigation = (
  files: ReadonlyArray<SourceFile>
): ReadonlyArray<{ readonly title: string; readonly pages: ReadonlyArray<SourceFile> }> => {
  const order = Array.from(
    read(contents)
      .toString()
      .matchAll(/\]\(([^)#]+)/g),
    ([, link = ""]) => normalize(join("docs", link))
  )
  const place = ({ path }: SourceFile): number => {
    const index = order.indexOf(path)
    return index === -1 ? order.length : index
  }
  const rest = new Set(files)
  const take = (belongs: (file: SourceFile) => boolean): ReadonlyArray<SourceFile> => {
    const taken = files.filter((file) => rest.has(file) && belongs(file))
    for (const file of taken) rest.delete(file)
    return taken.toSorted((a, b) => place(a) - place(b))
  }
  return parts.map(({ folder, pages, title }, index) => ({
    title,
    pages: [
      ...pages.flatMap((page) => take(({ path }) => path === page)),
      ...take(({ path }) =>
        folder === undefined ? index === parts.length - 1 : path.startsWith(folder)
      )
    ]
  }))
}

/** The address that a link of a page leads to; undefined for a file that the site does not show. */
export const resolveLink = (
  link: string,
  from: string,
  addresses: ReadonlyMap<string, string>
): string | undefined => {
  if (/^(?:https?:|mailto:|#)/.test(link)) return link
  if (/^[a-z][a-z0-9+.-]*:/i.test(link) || link.startsWith("/")) return undefined
  const [path = "", anchor] = link.split("#")
  const address = addresses.get(normalize(join(dirname(from), path)))
  return address === undefined || anchor === undefined ? address : `${address}#${anchor}`
}

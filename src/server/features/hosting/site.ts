/**
 * Site of a deployment: its files by path with their headers, and its settings. Selects the file and
 * the form that answers a path. Pure.
 */
import { Option, Schema } from "effect"
import { reservedPaths } from "#rpc/hosting/paths"
import type { BlobRow } from "#sql/hosting/blobs"
import type { FileRow } from "#sql/hosting/deployments"
import { isHashed, type Media, mediaOf } from "./media-types.ts"

/** Settings in the deployment's `svc.hosting.json`. */
export const SiteSettings = Schema.Struct({
  /** Sends COOP and COEP, which threads of game engines need. */
  crossOriginIsolation: Schema.optionalKey(Schema.Boolean),
  /** Answers navigations to unknown paths with `index.html`; true by default. */
  spa: Schema.optionalKey(Schema.Boolean)
})
type SiteSettings = typeof SiteSettings.Type

const decodeSettings = Schema.decodeUnknownOption(Schema.fromJsonString(SiteSettings))

/** Parses the settings of a deployment; undefined if they are invalid. */
export const parseSettings = (text: string): SiteSettings | undefined =>
  Option.getOrUndefined(decodeSettings(text))

/** File of a site. */
export interface SiteFile {
  readonly sha256: string
  /** Entity tag of the original bytes. */
  readonly tag: string
  readonly size: number
  readonly media: Media
  readonly brotliBytes: number | null
  readonly gzipBytes: number | null
  /** Whether the name has a hash of the content. */
  readonly isHashed: boolean
  /** Whether only the bytes show the encoding. */
  readonly needsSniffing: boolean
}

export interface Site {
  readonly files: ReadonlyMap<string, SiteFile>
  readonly settings: SiteSettings
}

const plain: Pick<BlobRow, "brotliBytes" | "gzipBytes"> = { brotliBytes: null, gzipBytes: null }

/** Builds the file of a path from its content, and the sizes of its compressed forms. */
export const makeFile = (
  { path, sha256, size }: FileRow,
  { brotliBytes, gzipBytes }: typeof plain
): SiteFile => ({
  sha256,
  tag: `"${sha256}"`,
  size,
  brotliBytes,
  gzipBytes,
  media: mediaOf(path),
  isHashed: isHashed(path),
  needsSniffing: /\.unityweb$/i.test(path)
})

/** Builds a site from the files of a deployment. */
export const makeSite = (
  files: ReadonlyArray<FileRow>,
  blobs: ReadonlyArray<BlobRow>,
  settings: SiteSettings
): Site => {
  const forms = new Map(blobs.map((blob) => [blob.sha256, blob]))
  return {
    settings,
    files: new Map(
      files.flatMap((file) =>
        file.path === reservedPaths.settings
          ? []
          : [[file.path, makeFile(file, forms.get(file.sha256) ?? plain)] as const]
      )
    )
  }
}

/** Result of a path look-up. */
export type Found =
  | { readonly kind: "file"; readonly file: SiteFile; readonly status: 200 | 404 }
  | { readonly kind: "redirect"; readonly to: string }
  /** A part of a page is missing: a page in its place would only hide that. */
  | { readonly kind: "missing asset" }
  | undefined

/** Decodes a path, without its first slash, to the name of a file; undefined if it is malformed. */
export const decodePath = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text).normalize("NFC")
  } catch {
    return undefined
  }
}

const fileOf = (file: SiteFile | undefined, status: 200 | 404 = 200): Found =>
  file === undefined ? undefined : { kind: "file", file, status }

/**
 * Finds the response to a path, in this order: the file itself, with `.html`, the folder's
 * `index.html`, `404.html`, and `index.html` for navigations that may mean a route of the page. The last
 * two never answer for a missing asset. A folder without its slash redirects, so that relative links work.
 */
export const findFile = ({ files, settings }: Site, path: string, isNavigation: boolean): Found => {
  const raw = path.slice(1)
  // A path that is a name as it stands needs no decoding; a name may have a percent sign.
  const named = raw.includes("%") ? undefined : files.get(raw)
  if (named !== undefined) return fileOf(named)
  const name = decodePath(raw)
  if (name === undefined) return undefined
  const isFolder = name === "" || name.endsWith("/")
  const exact = isFolder
    ? files.get(`${name}index.html`)
    : (files.get(name) ?? files.get(`${name}.html`))
  if (exact !== undefined) return fileOf(exact)
  if (!isFolder && files.has(`${name}/index.html`)) return { kind: "redirect", to: `${path}/` }
  if (isAsset(name, isNavigation)) return { kind: "missing asset" }
  const own404 = files.get("404.html")
  if (own404 !== undefined) return fileOf(own404, 404)
  const hasRoutes = isNavigation && settings.spa !== false && !plainFile.test(name)
  return hasRoutes ? fileOf(files.get("index.html")) : undefined
}

/**
 * Names of files that browsers, search engines and other programs ask for by themselves, or that a page
 * loads. No route of a page has such an extension, while `/users/jane.doe` may be a route.
 */
const plainFile = new RegExp(
  String.raw`\.(?:avif|css|gif|ico|jpe?g|js|json|map|mjs|mp[34]|ogg|pdf|php|png|svg|txt|` +
    "wasm|wav|web[mp]|webmanifest|woff2?|xml|zip)$",
  "i"
)

/**
 * Whether a path names a part of a page: a name with a hash, or one with an extension that the client does
 * not open as a page.
 */
const isAsset = (name: string, isNavigation: boolean): boolean =>
  isHashed(name) || (!isNavigation && /\.(?!html?$)[a-z0-9]{1,10}$/i.test(name))

/** Form of a file: original bytes, Brotli or gzip. */
export type Form = "" | ".br" | ".gz"

/** Whether an `Accept-Encoding` takes an encoding. */
export const accepts = (header: string, encoding: string): boolean =>
  header.split(",").some((item) => {
    const [name = "", ...parameters] = item.trim().toLowerCase().split(";")
    const isRefused = parameters.some((parameter) => /^\s*q=0(?:\.0*)?\s*$/.test(parameter))
    return name.trim() === encoding && !isRefused
  })

/** Returns the form of a file for an `Accept-Encoding`. Ranges refer to the original bytes. */
export const formOf = (
  { brotliBytes, gzipBytes }: SiteFile,
  acceptEncoding: string | undefined,
  range: string | undefined
): Form => {
  if (acceptEncoding === undefined || range !== undefined) return ""
  if (brotliBytes !== null && accepts(acceptEncoding, "br")) return ".br"
  return gzipBytes !== null && accepts(acceptEncoding, "gzip") ? ".gz" : ""
}

/** Byte range of a file: first and last byte. */
export interface Part {
  readonly start: number
  readonly end: number
}

/**
 * Returns the part that a `Range` header requests; null if the file has no such part. Returns undefined
 * for the whole file, which also answers several ranges and other units.
 */
export const partOf = (header: string | undefined, size: number): Part | null | undefined => {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? []
  if (first === "" && last === "") return undefined
  if (first === "") {
    const length = Math.min(Number(last), size)
    return length === 0 ? null : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  const end = last === "" ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== "" && Number(last) < start) return undefined
  return start >= size ? null : { start, end }
}

/**
 * Media types and encodings of hosted files by their name. Exports of game engines contain compressed
 * files such as `game.wasm.br`. Such a file gets the type of its content.
 */
import { Option } from "effect"
import { Mime } from "effect/http"

const octets = "application/octet-stream"

/** Types that game engines need, or that the table of Effect lacks or defines differently. */
const ownTypes: Readonly<Record<string, string>> = {
  basis: octets,
  data: octets,
  flac: "audio/flac",
  glb: "model/gltf-binary",
  gltf: "model/gltf+json",
  ico: "image/x-icon",
  ktx2: "image/ktx2",
  map: "application/json",
  mem: octets,
  mjs: "text/javascript",
  js: "text/javascript",
  pck: octets,
  wasm: "application/wasm",
  webmanifest: "application/manifest+json"
}

const textForm = /^text\/|[/+](?:json|xml|javascript)$/

/** Types that shrink under compression. Most images, sounds and fonts are already compressed. */
const compressibleForms: ReadonlyArray<RegExp> = [
  textForm,
  /^application\/(?:octet-stream|wasm)$/,
  /^(?:font\/(?:ttf|otf)|image\/(?:bmp|x-icon|svg\+xml)|model\/gltf-binary)$/
]

const extensionOf = (path: string): string => /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? ""

const typeOf = (path: string): string => {
  const type = ownTypes[extensionOf(path)] ?? Option.getOrElse(Mime.getType(path), () => octets)
  return textForm.test(type) && !type.includes("charset") ? `${type}; charset=utf-8` : type
}

/** Media type and encoding of a file. */
export interface Media {
  readonly type: string
  /** Encoding that the file's bytes already have. */
  readonly encoding: "br" | "gzip" | undefined
}

/** Compressed archives. Browsers download them without decoding. */
const archiveForm = /\.(?:tar|tgz)(?:\.(?:gz|br))?$/i

const encodings: Readonly<Record<string, Media["encoding"]>> = { br: "br", gz: "gzip" }

/** Returns the media of a file by its path. */
export const mediaOf = (path: string): Media => {
  const encoding = encodings[extensionOf(path)]
  const inner = path.replace(/\.[^./]+$/, "")
  const isWrapped = encoding !== undefined && extensionOf(inner) !== "" && !archiveForm.test(path)
  if (isWrapped) return { type: typeOf(inner), encoding }
  // Unity names compressed files so, whatever the compression: see `sniffEncoding`.
  if (/\.unityweb$/i.test(path)) return { type: typeOf(inner), encoding: undefined }
  return { type: typeOf(path), encoding: undefined }
}

const unityMark = "UnityWeb Compressed Content (brotli)"

/** Returns the encoding of a `.unityweb` file by its first bytes. */
export const sniffEncoding = (head: Buffer): Media["encoding"] => {
  if (head[0] === 0x1f && head[1] === 0x8b) return "gzip"
  return head.includes(unityMark) ? "br" : undefined
}

/** Whether the service should compress a file at this path. */
export const isCompressible = (path: string): boolean => {
  const { encoding, type } = mediaOf(path)
  if (encoding !== undefined || /\.unityweb$/i.test(path)) return false
  const [bare = ""] = type.split(";", 1)
  return compressibleForms.some((form) => form.test(bare))
}

/**
 * Hash in a file name such as `app.3f2a91bc.js`: eight or more hexadecimal digits with a digit and a
 * letter.
 */
const hexHash = /[.\-_](?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?:\.[^/]*)?$/
/** Vite's hash in the name of a file in `assets`: eight characters that do not form a word. */
const viteHash =
  /(?:^|\/)assets\/[^/]*-(?=[\w-]*[A-Z])(?=[\w-]*[a-z])(?=[\w-]*(?:\d|[A-Z][\w-]*[A-Z]))[\w-]{8}\.[^/]+$/
/** Folders of Next.js and SvelteKit whose files never change. */
const immutableFolder = /^(?:_next\/static|_app\/immutable)\//

/**
 * Whether the name of a file contains a hash of its content. Caches may keep such a file indefinitely.
 */
export const isHashed = (path: string): boolean =>
  hexHash.test(path) || viteHash.test(path) || immutableFolder.test(path)

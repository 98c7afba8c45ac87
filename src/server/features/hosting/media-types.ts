/**
 * Media types and encodings of hosted files by their name. Exports of game engines contain files that are
 * compressed already, such as `game.wasm.br`; they get the type of what they contain.
 */
import { Option } from "effect"
import { Mime } from "effect/http"

const octets = "application/octet-stream"

/** Types that game engines need, or that the table of Effect lacks or has otherwise. */
const ownTypes: Readonly<Record<string, string>> = {
  basis: octets,
  data: octets,
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

/** Types that shrink under compression; images, sounds and fonts mostly are compressed already. */
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

/** How a file is delivered. */
export interface Media {
  readonly type: string
  /** The encoding that its bytes have already. */
  readonly encoding: "br" | "gzip" | undefined
}

/** Compressed archives, which people download as they are. */
const archiveForm = /\.(?:tar|tgz)(?:\.(?:gz|br))?$/i

const encodings: Readonly<Record<string, Media["encoding"]>> = { br: "br", gz: "gzip" }

/** The media of a file by its path. */
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

/** The encoding of a `.unityweb` file by its first bytes. */
export const sniffEncoding = (head: Buffer): Media["encoding"] => {
  if (head[0] === 0x1f && head[1] === 0x8b) return "gzip"
  return head.includes(unityMark) ? "br" : undefined
}

/** Whether the service should compress a file of this path. */
export const isCompressible = (path: string): boolean => {
  const { encoding, type } = mediaOf(path)
  if (encoding !== undefined || /\.unityweb$/i.test(path)) return false
  const [bare = ""] = type.split(";", 1)
  return compressibleForms.some((form) => form.test(bare))
}

/** `app.3f2a91bc.js`: eight or more hexadecimal digits with a digit and a letter. */
const hexHash = /[.\-_](?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?:\.[^/]*)?$/
/** A file of the folder `assets` with eight characters that are no word, as Vite names it. */
const viteHash =
  /(?:^|\/)assets\/[^/]*-(?=[\w-]*[A-Z])(?=[\w-]*[a-z])(?=[\w-]*(?:\d|[A-Z][\w-]*[A-Z]))[\w-]{8}\.[^/]+$/
/** Folders whose files never change, of Next.js and SvelteKit. */
const immutableFolder = /^(?:_next\/static|_app\/immutable)\//

/** Whether the name of a file contains a hash of its content, so that caches may keep it for ever. */
export const isHashed = (path: string): boolean =>
  hexHash.test(path) || viteHash.test(path) || immutableFolder.test(path)

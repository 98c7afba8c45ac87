/**
 * Checks of an app's picture and font before the renderer reads them. Only PNG, JPEG, TTF and OTF pass, by
 * their first bytes: an SVG is a program, and compressed fonts expand. The size of a picture is bounded
 * before anything decodes it.
 */
import { shareCards } from "#rpc/share/limits"

interface Size {
  readonly width: number
  readonly height: number
}

const pngSignature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

const begins = (bytes: Uint8Array, first: ReadonlyArray<number>): boolean =>
  first.every((byte, index) => bytes[index] === byte)

const viewOf = ({ buffer, byteLength, byteOffset }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength)

/** The size in the header, which a PNG begins with. */
const pngSize = (bytes: Uint8Array): Size | undefined => {
  const view = viewOf(bytes)
  if (bytes.length < 24 || view.getUint32(12) !== 0x49484452) return undefined
  return { width: view.getUint32(16), height: view.getUint32(20) }
}

/** Whether a marker of a JPEG begins a frame: SOF0 to SOF15 without DHT, JPG and DAC. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** The size in the first frame header of a JPEG. Only segments with a length come before it. */
const jpegSize = (bytes: Uint8Array): Size | undefined => {
  const view = viewOf(bytes)
  for (let at = 2; at + 9 <= bytes.length; at += 2 + view.getUint16(at + 2)) {
    // Any number of fill bytes may precede a marker.
    while (view.getUint8(at) === 0xff && view.getUint8(at + 1) === 0xff && at + 10 < bytes.length) {
      at += 1
    }
    if (view.getUint8(at) !== 0xff || at + 9 > bytes.length) return undefined
    if (isFrame(view.getUint8(at + 1))) {
      return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
    }
  }
  return undefined
}

const sizeOf = (bytes: Uint8Array): Size | undefined => {
  if (begins(bytes, pngSignature)) return pngSize(bytes)
  return begins(bytes, [0xff, 0xd8, 0xff]) ? jpegSize(bytes) : undefined
}

/** Returns why the renderer must not decode a picture; undefined if it may. */
export const pictureProblem = (bytes: Uint8Array): string | undefined => {
  const size = sizeOf(bytes)
  if (size === undefined) return "it is neither a PNG nor a JPEG"
  const { height, width } = size
  if (width === 0 || height === 0) return "it has no size"
  const { pictureMaxPixels, pictureMaxSide } = shareCards
  if (width > pictureMaxSide || height > pictureMaxSide || width * height > pictureMaxPixels) {
    return `it has ${width} by ${height} pixels, more than ${pictureMaxPixels} in all or ${pictureMaxSide} on a side`
  }
  return undefined
}

/** First bytes of TTF and OTF: version 1, Apple's `true`, and OpenType with CFF outlines. */
const fontVersions = [0x00010000, 0x74727565, 0x4f54544f]

/** Returns why the renderer must not read a font; undefined if it may. */
export const fontProblem = (bytes: Uint8Array): string | undefined =>
  bytes.length >= 4 && fontVersions.includes(viewOf(bytes).getUint32(0))
    ? undefined
    : "it is neither a TTF nor an OTF"

/**
 * Assets that could not be drawn, by hash: the service does not spend its time on them again. Bounded; the
 * oldest goes. An entry ends after an hour, since a fault of the machine may have caused it.
 */
export class FailedAssets {
  readonly #until = new Map<string, number>()

  add(hash: string, nowMillis: number): void {
    this.#until.delete(hash)
    this.#until.set(hash, nowMillis + shareCards.failedAssetSeconds * 1000)
    const [oldest] = this.#until.keys()
    if (oldest !== undefined && this.#until.size > shareCards.failedAssetsMax) {
      this.#until.delete(oldest)
    }
  }

  has(hash: string, nowMillis: number): boolean {
    return nowMillis < (this.#until.get(hash) ?? 0)
  }
}

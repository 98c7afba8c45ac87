/**
 * Request of Node's HTTP server that joins small pieces of its body. Node keeps each chunk of a
 * body as a Buffer of its own, which takes about 1 kB even for one byte. A body of 16 KiB in chunks
 * of one byte would take 16 MB, also while nobody reads it. Each chunk also takes a microsecond, so
 * the service gives up a body in very many small ones.
 */
import type { EnvironmentId } from "#rpc/ids"
import { TimedMessage } from "#server/platform/body-deadlines"

export const bodyPieces = {
  /**
   * Pieces of a body beside one for each `bodyPieceMeanBytes`. A connection with more is cut, and after
   * `fineBodiesMax` such bodies within `fineBodiesSeconds` its address is refused for as long.
   */
  bodyPiecesMax: 1024,
  bodyPieceMeanBytes: 64
} as const

/** Size from which a piece is passed on as it is. */
const smallBytes = 1024
const joinedBytes = 4 * 1024

export class CompactMessage extends TimedMessage {
  /** Whether the reader waits for the next piece. */
  #wanted = false
  #joined: Buffer | undefined
  #length = 0
  #pieces = 0
  #bytes = 0
  #onTooManyPieces: (message: CompactMessage) => void = () => undefined
  #isGivenUp = false
  #environmentId: EnvironmentId | undefined

  /** Environment of the request's key, for the counts of requests. */
  get environmentId(): EnvironmentId | undefined {
    return this.#environmentId
  }

  /** Sets the environment of the request's key. */
  identify(environmentId: EnvironmentId): void {
    this.#environmentId = environmentId
  }

  /**
   * Sets the callback for a body in too many small pieces. It runs once, and the message drops the other
   * pieces.
   */
  limitPieces(onTooMany: (message: CompactMessage) => void): void {
    this.#onTooManyPieces = onTooMany
  }

  override _read(size: number): void {
    this.#wanted = true
    if (this.#length > 0) this.#flush()
    super._read(size)
  }

  /**
   * Appends the next piece from the parser. If it returns false, the parser pauses the connection
   * until `_read`.
   */
  override push(piece: unknown, encoding?: BufferEncoding): boolean {
    if (this.#isGivenUp) return false
    if (Buffer.isBuffer(piece) && this.#isTooFine(piece.length)) {
      this.#isGivenUp = true
      this.#onTooManyPieces(this)
      return false
    }
    if (!Buffer.isBuffer(piece) || piece.length >= smallBytes) {
      if (this.#length > 0) this.#flush()
      this.#wanted = false
      return super.push(piece, encoding)
    }
    if (this.#wanted && this.#length === 0) {
      this.#wanted = false
      return super.push(piece)
    }
    this.#join(piece)
    return this.#length + smallBytes > joinedBytes ? this.#flush() : true
  }

  /** Joins a piece to those before. A body in one piece, as most are, stays as it is. */
  #join(piece: Buffer): void {
    if (this.#length === 0) {
      this.#joined = piece
      this.#length = piece.length
      return
    }
    if (this.#joined === undefined || this.#joined.length < joinedBytes) {
      const joined = Buffer.allocUnsafeSlow(joinedBytes)
      this.#joined?.copy(joined)
      this.#joined = joined
    }
    this.#length += piece.copy(this.#joined, this.#length)
  }

  #isTooFine(bytes: number): boolean {
    this.#pieces += 1
    this.#bytes += bytes
    return this.#pieces > bodyPieces.bodyPiecesMax + this.#bytes / bodyPieces.bodyPieceMeanBytes
  }

  #flush(): boolean {
    const joined = this.#joined?.subarray(0, this.#length)
    this.#joined = undefined
    this.#length = 0
    this.#wanted = false
    return super.push(joined)
  }
}

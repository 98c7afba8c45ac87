/** The messages of STUN (RFC 8489) and TURN (RFC 8656) that ask a server for a relay. */
import { createHash, createHmac, randomBytes } from "node:crypto"

const cookie = 0x2112a442
const headerBytes = 20
const integrityBytes = 24
const udp = 17

export const methods = { binding: 0x0001, allocate: 0x0003, refresh: 0x0004 } as const

const attributes = {
  username: 0x0006,
  integrity: 0x0008,
  error: 0x0009,
  lifetime: 0x000d,
  realm: 0x0014,
  nonce: 0x0015,
  transport: 0x0019
} as const

const successClass = 0x0100
const errorClass = 0x0110

/** Credentials that the service issued, with the realm and nonce that the server requires. */
export interface LongTermCredentials {
  readonly username: string
  readonly credential: string
  readonly realm: string
  readonly nonce: string
}

const attribute = (type: number, value: Buffer): Buffer => {
  const bytes = Buffer.alloc(4 + Math.ceil(value.length / 4) * 4)
  bytes.writeUInt16BE(type, 0)
  bytes.writeUInt16BE(value.length, 2)
  value.copy(bytes, 4)
  return bytes
}

const withHeader = (method: number, body: Buffer, id: Buffer, length = body.length): Buffer => {
  const header = Buffer.alloc(headerBytes)
  header.writeUInt16BE(method, 0)
  header.writeUInt16BE(length, 2)
  header.writeUInt32BE(cookie, 4)
  id.copy(header, 8)
  return Buffer.concat([header, body])
}

const own = (method: number): ReadonlyArray<Buffer> => {
  if (method === methods.allocate) {
    return [attribute(attributes.transport, Buffer.from([udp, 0, 0, 0]))]
  }
  return method === methods.refresh ? [attribute(attributes.lifetime, Buffer.alloc(4))] : []
}

/** Returns a request; a refresh ends the relay. */
export const stunRequest = (method: number, credentials?: LongTermCredentials): Buffer => {
  const id = randomBytes(12)
  if (credentials === undefined) return withHeader(method, Buffer.concat(own(method)), id)
  const { credential, nonce, realm, username } = credentials
  const body = Buffer.concat([
    ...own(method),
    attribute(attributes.username, Buffer.from(username)),
    attribute(attributes.realm, Buffer.from(realm)),
    attribute(attributes.nonce, Buffer.from(nonce))
  ])
  const key = createHash("md5").update(`${username}:${realm}:${credential}`).digest()
  const covered = withHeader(method, body, id, body.length + integrityBytes)
  const mac = createHmac("sha1", key).update(covered).digest()
  return withHeader(method, Buffer.concat([body, attribute(attributes.integrity, mac)]), id)
}

/** A response: success, or an error with its code and what the server asks for. */
export type StunResponse =
  | { readonly isSuccess: true }
  | {
      readonly isSuccess: false
      readonly code: number
      readonly realm: string
      readonly nonce: string
    }

const attributesOf = (message: Buffer): ReadonlyMap<number, Buffer> => {
  const found = new Map<number, Buffer>()
  let at = headerBytes
  while (at + 4 <= message.length) {
    const length = message.readUInt16BE(at + 2)
    found.set(message.readUInt16BE(at), message.subarray(at + 4, at + 4 + length))
    at += 4 + Math.ceil(length / 4) * 4
  }
  return found
}

/** Reads the response to a request; undefined for anything else. */
export const readStunResponse = (request: Buffer, message: Buffer): StunResponse | undefined => {
  if (message.length < headerBytes) return undefined
  if (!message.subarray(4, headerBytes).equals(request.subarray(4, headerBytes))) return undefined
  const method = request.readUInt16BE(0)
  const type = message.readUInt16BE(0)
  if (type === method + successClass) return { isSuccess: true }
  if (type !== method + errorClass) return undefined
  const found = attributesOf(message)
  const error = found.get(attributes.error)
  const text = (of: number) => found.get(of)?.toString() ?? ""
  return {
    isSuccess: false,
    code: error === undefined || error.length < 4 ? 0 : (error[2] ?? 0) * 100 + (error[3] ?? 0),
    realm: text(attributes.realm),
    nonce: text(attributes.nonce)
  }
}

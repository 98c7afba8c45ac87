/** What the AsyncAPI document says about opening and closing a socket: `auth`, its replies, close codes. */
import type { Json } from "./openapi/json.ts"
import { sampleValues } from "./openapi/sample-values.ts"
import { closeMeanings } from "./reference.ts"

const { accessToken: token, publishableKey: key } = sampleValues

/** The forms of `auth`, each with an example. */
export const authExamples: ReadonlyArray<Json> = [
  {
    name: "player",
    summary: "The first frame of a player's socket.",
    payload: { t: "auth", key, token }
  },
  {
    name: "anonymous",
    summary: "The first frame of a socket without a player, which only listens to open channels.",
    payload: { t: "auth", key, anon: true }
  },
  {
    name: "renewal",
    summary: "A later frame, with a new token of the same player.",
    payload: { t: "auth", rid: "7", token }
  }
]

export const authDescription = `The first frame of a socket, within five seconds, has \`key\`, and \`token\` or
\`anon\`. The service replies with \`welcome\`, and with \`auth_reply\` after it if the frame has a \`rid\`. A failure
is an \`auth_reply\` with an error (without a \`rid\` the event \`warn\`), and then a close.

A later \`auth\` with a new token of the same player extends the connection, with the same replies. A minute before
the token expires the service sends \`warn\` with the code \`token_expiring\`. Thirty seconds after expiry it closes
with 4002. A token of another player closes the socket with 4001. After any other failure it stays open until the old
token expires.`

/** The credentials of `auth`. They travel in its fields, not in headers. */
export const securitySchemes = {
  publishableKey: {
    type: "apiKey",
    in: "user",
    description: "The publishable key of the environment, in the field `key` of `auth`."
  },
  accessToken: {
    type: "apiKey",
    in: "password",
    description:
      "The player's access token, in the field `token` of `auth`. Anonymous sockets have none."
  }
} as const

export const security = Object.keys(securitySchemes).map((name) => ({
  $ref: `#/components/securitySchemes/${name}`
}))

/** Codes that a frame of any type may fail with: it could not be read. */
export const unreadableCodes: ReadonlyArray<string> = ["invalid_frame", "unknown_type"]

/** Close codes of the socket, as the extension `x-close-codes`. */
export const closeCodeList: ReadonlyArray<Json> = Object.entries(closeMeanings).map(
  ([code, meaning]) => ({ code: Number(code), description: meaning })
)

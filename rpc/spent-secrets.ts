/**
 * Repeats of requests that spend a secret: a refresh token, a sign-in code, a link of a mail, an
 * invitation. A client whose response was lost sends the same request with the same `Idempotency-Key` and
 * gets the response. A copied secret is of no use without the key, so the key has at least 128 random bits,
 * and the client stores it before it sends.
 */
import { Schema } from "effect"
import { IdempotencyKeyReused, InvalidIdempotencyKey, wire } from "./errors/codes.ts"

/** Responses to requests that spend a secret, kept for a repeat with the same `Idempotency-Key`. */
export const spentResponses = {
  keptSeconds: 600,
  /**
   * Stored responses of an environment, and of all developers together. Beyond it, a response is not
   * stored, and its repeat gets the error of a spent secret.
   */
  maxPerTenant: 10_000,
  /** The fewest characters of the key's alphabet that hold 128 bits. */
  keyMinCharacters: 22,
  keyMaxCharacters: 128
} as const

const { keptSeconds, keyMaxCharacters, keyMinCharacters } = spentResponses

/** Form of the key. The service cannot measure randomness, but fewer characters hold too little. */
export const repeatKeyForm =
  `${keyMinCharacters} to ${keyMaxCharacters} characters of A-Z a-z 0-9 _ . : -, ` +
  "with at least 128 random bits"

const header = (kept: string) => ({
  "idempotency-key": Schema.optionalKey(
    Schema.String.annotate({
      description:
        `${repeatKeyForm}. Make a new one for each secret, and store it before you send. ` +
        `The same request with the same key gets the same response ${kept}.`
    })
  )
})

/** The header of requests whose response is stored. */
export const repeatable = header(`for ${keptSeconds / 60} minutes, unless its session has ended`)

/** The header of a refresh, whose response is made again. */
export const repeatableRefresh = header("until the new refresh token is used")

/** Errors of requests with {@link repeatable}. */
export const repeatErrors = [wire(InvalidIdempotencyKey), wire(IdempotencyKeyReused)] as const

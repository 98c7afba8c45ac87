/** Kinds of credentials by prefix. They serve the error for a request with the wrong kind of key. */
import type { KeyKind } from "#rpc/auth"
import { InvalidKey } from "#rpc/errors/codes"

const names: Readonly<Record<KeyKind, string>> = {
  publishable: "a publishable key (pk_)",
  secret: "a secret key (sk_)"
}

/** Credentials that a developer may send as a key, by prefix. Access tokens are JWTs. */
const kinds: ReadonlyArray<readonly [prefix: string, kind: KeyKind | undefined, name: string]> = [
  ["pk_", "publishable", names.publishable],
  ["sk_", "secret", names.secret],
  ["kds_", undefined, "a developer session (kds_)"],
  ["eyJ", undefined, "an access token"]
]

/**
 * Returns the error for a credential of another kind than `needed`; undefined for the right or no kind.
 */
export const wrongKind = (key: string, needed: ReadonlyArray<KeyKind>): InvalidKey | undefined => {
  const given = kinds.find(([prefix]) => key.startsWith(prefix))
  if (given === undefined) return undefined
  const [, kind, name] = given
  if (kind !== undefined && needed.includes(kind)) return undefined
  const wanted = needed.map((each) => names[each]).join(" or ")
  return new InvalidKey({ message: `This is ${name}. This endpoint needs ${wanted}.` })
}

/** Proof Key for Code Exchange (RFC 7636, S256): only the client that started a sign-in can complete it. */

export interface ProofKey {
  /** Verifier of 43 base64url characters. It stays on this device until the exchange. */
  readonly verifier: string
  /** Challenge that the client sends at the start: the SHA-256 of the verifier. */
  readonly challenge: string
}

/** Makes a key pair. Throws on pages that are neither https nor localhost, which have no Web Crypto. */
export const makeProofKey = async (): Promise<ProofKey> => {
  const { crypto } = globalThis
  if (crypto?.subtle === undefined) {
    throw new TypeError("Sign-in needs a page on https or localhost.")
  }
  const verifier = randomText()
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))
  return { verifier, challenge: base64Url(new Uint8Array(digest)) }
}

/** 256 random bits in base64url. */
export const randomText = (): string =>
  base64Url(globalThis.crypto.getRandomValues(new Uint8Array(32)))

const base64Url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")

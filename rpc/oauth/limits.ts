/** Limits of OAuth sign-in. */
import { KiB } from "../units.ts"

export const oauthLimits = {
  credentialMaxCharacters: 512,
  privateKeyMaxCharacters: 4096,
  nativeClientIdsMax: 8,
  redirectUrlMaxCharacters: 2048,
  /** One parameter of a provider's callback. */
  returnMaxCharacters: 4096,
  /** The form in which Apple returns: several parameters, with escapes. */
  returnBodyMaxBytes: 64 * KiB,
  idTokenMaxCharacters: 8192,
  /** An id token or a private key, with the other fields and escapes. */
  bodyMaxBytes: 32 * KiB,
  /** Maximum length of a person's name. The service cuts it to the limit of a display name. */
  nameMaxCharacters: 256
} as const

/** Starts, callbacks, exchanges and native sign-ins from one IP address. */
export const oauthThrottles = {
  startPerAddress: { burst: 30, seconds: 60 },
  returnPerAddress: { burst: 60, seconds: 60 },
  exchangePerAddress: { burst: 30, seconds: 60 },
  nativePerAddress: { burst: 30, seconds: 60 }
} as const

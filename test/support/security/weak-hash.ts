/** A deliberately weak password hash, cheap enough for tests with thousands of guesses. */
import { argon2Sync } from "node:crypto"

const salt = Buffer.alloc(16, 1)

const text = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "")

/** argon2id in the PHC string format, of 8 KiB and one pass. */
export const weakHash = (message: string): string => {
  const options = { message, nonce: salt, parallelism: 1, tagLength: 32, memory: 8, passes: 1 }
  return `$argon2id$v=19$m=8,t=1,p=1$${text(salt)}$${text(argon2Sync("argon2id", options))}`
}

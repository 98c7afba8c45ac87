/** Forms of an email address under which an account may be stored. */
import { domainToUnicode } from "node:url"
import { normalizeEmail, typedEmail } from "#rpc/email"

/**
 * The forms in which the account of an address may be stored, in the order in which to look. Releases
 * before 0.2.0 kept the domain as it was typed, so two accounts may have one mailbox. Each is found by
 * the spelling with which it was made.
 */
export const emailForms = (email: string): ReadonlyArray<string> => {
  const normal = normalizeEmail(email)
  const at = normal.lastIndexOf("@") + 1
  const domain = domainToUnicode(normal.slice(at))
  const unicode = domain === "" ? normal : normal.slice(0, at) + domain
  return [...new Set([typedEmail(email), normal, unicode])]
}

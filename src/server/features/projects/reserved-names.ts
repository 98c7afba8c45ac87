/** Reserved project names: names that impersonate the service or its staff. */

/** Words for the service itself; no name may begin with one. */
const service = ["svc", "playerbackend"]

/** Words for the service's staff; a name may not consist of such words alone. */
const staff: ReadonlySet<string> = new Set(
  (
    "admin administrator billing help helpdesk mod moderation moderator official root security " +
    "service staff support system team the"
  ).split(" ")
)

/** Digits and symbols that look like letters. */
const lookalikes: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
  "|": "i"
}

/** Whether a name impersonates the service or its staff, also with accents, spaces or look-alikes. */
export const isReservedName = (name: string): boolean => {
  const plain = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[\p{M}\p{Cf}]/gu, "")
    .replace(/[0134578@$|]/g, (sign) => lookalikes[sign] ?? sign)
  const words = plain.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "")
  const letters = words.join("")
  if (letters === "") return false
  if (service.some((word) => letters.startsWith(word))) return true
  return words.every((word) => staff.has(word)) || staff.has(letters)
}

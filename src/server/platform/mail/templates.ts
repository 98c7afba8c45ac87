/** Mail templates: plain text and HTML with one or two links, in the project's name. */
import { secondsPerDay } from "#rpc/units"
import type { MailPurpose } from "#sql/mail"

export const verificationLinkSeconds = secondsPerDay
const resetLinkSeconds = 30 * 60

/** A mail without its addresses. */
export interface MailContent {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** Purpose of a link. A verification mail has two: to confirm the address, and to disown it. */
export type LinkPurpose = MailPurpose | "disown"

/** Lifetime of a link in seconds. */
export const linkSeconds: Readonly<Record<LinkPurpose, number>> = {
  disown: verificationLinkSeconds,
  verify: verificationLinkSeconds,
  reset: resetLinkSeconds
}

const wordings: Readonly<
  Record<MailPurpose, { readonly subject: string; readonly why: string; readonly act: string }>
> = {
  verify: {
    subject: "Confirm your email for",
    why: "Please confirm that this is your email address for",
    act: "Confirm this email address"
  },
  reset: {
    subject: "Choose a new password for",
    why: "Somebody, we hope you, asked for a new password for",
    act: "Choose a new password"
  }
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

/** Escapes a text for HTML, including attributes. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => entities[sign] ?? sign)

/** `24 hours`, `30 minutes`. */
const lengthOf = (seconds: number): string =>
  seconds < 7200 ? `${Math.round(seconds / 60)} minutes` : `${Math.round(seconds / 3600)} hours`

const disownAct = "This was not me: remove my address"

/** Renders the mail for a purpose. A verification mail gets a second link, which disowns the address. */
export const renderMail = (
  purpose: MailPurpose,
  projectName: string,
  link: string,
  disownLink?: string
): MailContent => {
  const { act, subject, why } = wordings[purpose]
  const name = projectName.replace(/\p{C}+/gu, " ").trim()
  const rest =
    `The link works once, for ${lengthOf(linkSeconds[purpose])}. ` +
    (disownLink === undefined
      ? "If this was not you, ignore this mail: nothing has changed."
      : "If this was not you, somebody has signed up with your address. The next link removes it.")
  const second = disownLink === undefined ? "" : `\n${disownAct}:\n${disownLink}\n`
  const secondHtml =
    disownLink === undefined
      ? ""
      : `<p><a href="${escapeHtml(disownLink)}">${escapeHtml(disownAct)}</a></p>`
  return {
    subject: `${subject} ${name}`,
    text: `${why} ${name}.\n\n${act}:\n${link}\n\n${rest}\n${second}`,
    html:
      `<!doctype html><html lang="en"><head><meta charset="utf-8">` +
      `<title>${escapeHtml(`${subject} ${name}`)}</title></head>` +
      `<body style="font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;margin:24px;max-width:560px">` +
      `<p>${escapeHtml(`${why} ${name}.`)}</p>` +
      `<p><a href="${escapeHtml(link)}" style="display:inline-block;padding:10px 18px;` +
      `border-radius:6px;background:#1a56db;color:#ffffff;text-decoration:none">` +
      `${escapeHtml(act)}</a></p>` +
      `<p style="color:#555555;font-size:14px">${escapeHtml(rest)}</p>${secondHtml}</body></html>`
  }
}

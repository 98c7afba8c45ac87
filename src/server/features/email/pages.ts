/**
 * The service's own pages for links of mails whose caller has none (decisions 3.2.5): `/-/verify` and
 * `/-/reset`. They are the same for everybody: the token, and the publishable key by which the API
 * knows the environment, stand in the link's fragment, which no server and no log sees. A page asks
 * the API as a page of the app would, so every check of the API holds; its origin is the service's own,
 * which may always call.
 *
 * Opening a link uses nothing up, since programs that guard mailboxes open links too: that takes a
 * click. The pages hold all they need, and their policy allows nothing else.
 */
import { hash } from "node:crypto"
import { Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { sessions as limits } from "#rpc/limits"
import { paths } from "#rpc/paths"
import type { MailPurpose } from "#sql/mail"

const style = `
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 0; }
main { max-width: 26rem; margin: 15vh auto 0; padding: 0 1.5rem; }
label { display: block; margin-bottom: 1rem; }
input { display: block; box-sizing: border-box; width: 100%; margin-top: .25rem; padding: .6rem;
  font: inherit; border: 1px solid #767676; border-radius: 6px; }
button { padding: .6rem 1.2rem; font: inherit; color: #fff; background: #1a56db; border: 0;
  border-radius: 6px; cursor: pointer; }
button:disabled { background: #767676; cursor: default; }
@media (prefers-color-scheme: dark) {
  body { color: #eee; background: #161616; }
  input { color: inherit; background: #222; }
}
`

interface Page {
  readonly title: string
  readonly act: string
  readonly done: string
  /** What is asked of the API, from the page's own address. */
  readonly asked: string
  readonly fields: string
}

const pages: Readonly<Record<MailPurpose, Page>> = {
  verify: {
    title: "Confirm your email",
    act: "Confirm",
    done: "Thank you, your email is confirmed. You can close this page.",
    asked: "../v1/auth/email/verify",
    fields: ""
  },
  reset: {
    title: "Choose a new password",
    act: "Set the password",
    done: "Your password is set. Sign in with it in the app; you can close this page.",
    asked: "../v1/auth/password/reset",
    fields:
      `<label>New password<input name="password" type="password" required autofocus ` +
      `autocomplete="new-password" minlength="${limits.passwordMinCharacters}" ` +
      `maxlength="${limits.passwordMaxCharacters}"></label>`
  }
}

const scriptOf = (purpose: MailPurpose, { asked, done }: Page): string => `
const link = new URLSearchParams(location.hash.slice(1));
const token = link.get("svc_${purpose}"), key = link.get("svc_key");
const form = document.querySelector("form"), told = document.querySelector("output");
const button = form.querySelector("button");
const end = (text) => { form.hidden = true; told.textContent = text; };
const over = "This link was used or has expired. Please ask for a new one.";
if (!token || !key) end("This link is not complete. Please open it again from the mail.");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  told.textContent = "";
  try {
    const answer = await fetch("${asked}", {
      method: "POST",
      headers: { "content-type": "application/json", "x-svc-key": key },
      body: JSON.stringify({ token, ...Object.fromEntries(new FormData(form)) })
    });
    const { error } = await answer.json();
    if (answer.ok) {
      history.replaceState(null, "", location.pathname);
      return end("${done}");
    }
    if (["invalid_token", "invalid_key"].includes(error.code)) return end(over);
    told.textContent = error.message;
  } catch {
    told.textContent = "That did not work. Please try again.";
  }
  button.disabled = false;
});
`

const sourceOf = (text: string): string => `'sha256-${hash("sha256", text, "base64")}'`

const pageOf = (purpose: MailPurpose): HttpServerResponse.HttpServerResponse => {
  const page = pages[purpose]
  const script = scriptOf(purpose, page)
  const html =
    `<!doctype html><html lang="en"><head><meta charset="utf-8">` +
    `<meta name="viewport" content="width=device-width, initial-scale=1">` +
    `<title>${page.title}</title><style>${style}</style></head>` +
    `<body><main><h1>${page.title}</h1><form>${page.fields}<button>${page.act}</button></form>` +
    `<p><output></output></p><noscript>This page needs JavaScript.</noscript></main>` +
    `<script>${script}</script></body></html>`
  const policy =
    `default-src 'none'; script-src ${sourceOf(script)}; style-src ${sourceOf(style)}; ` +
    `connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`
  return HttpServerResponse.text(html, {
    contentType: "text/html; charset=utf-8",
    headers: { "content-security-policy": policy, "referrer-policy": "no-referrer" }
  })
}

/** `GET /-/verify` and `GET /-/reset`. */
export const EmailPages = Layer.mergeAll(
  HttpRouter.add("GET", paths.verify, pageOf("verify")),
  HttpRouter.add("GET", paths.reset, pageOf("reset"))
)

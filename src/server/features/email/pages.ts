/**
 * Built-in pages for mail links. `/-/verify` and `/-/reset` are for apps without pages of their own,
 * `/-/disown` for the second link in verification mails of all apps. `/-/confirm` confirms the address
 * of a developer. The pages are static. The link's fragment holds the token and the publishable key,
 * so no server and no log sees them. A page calls the public API, whose checks all apply.
 *
 * A link is redeemed by two different steps of a person, not on opening: mail scanners open links, and some
 * press every button. So the person first ticks a statement, or types a password. The pages are
 * self-contained, and their content security policy allows nothing else.
 */
import { hash } from "node:crypto"
import { Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { paths } from "#rpc/paths"
import { sessionLimits } from "#rpc/sessions"
import type { LinkPurpose } from "#server/platform/mail/templates"

const style = `
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 0; }
main { max-width: 26rem; margin: 15vh auto 0; padding: 0 1.5rem; }
label { display: block; margin-bottom: 1rem; }
input { display: block; box-sizing: border-box; width: 100%; margin-top: .25rem; padding: .6rem;
  font: inherit; border: 1px solid #767676; border-radius: 6px; }
input[type=checkbox] { display: inline; width: auto; margin: 0 .5rem 0 0; }
button { padding: .6rem 1.2rem; font: inherit; color: #fff; background: #1a56db; border: 0;
  border-radius: 6px; cursor: pointer; }
button:disabled { background: #767676; cursor: default; }
@media (prefers-color-scheme: dark) {
  body { color: #eee; background: #161616; }
  input:not([type=checkbox]) { color: inherit; background: #222; }
}
`

interface Page {
  readonly title: string
  readonly button: string
  readonly done: string
  /** Path of the API relative to the page. */
  readonly endpoint: string
  readonly fields: string
}

/** Statement that the person must tick. It has no name, so that the form does not send it. */
const statement = (text: string): string =>
  `<label><input type="checkbox" required autocomplete="off">${text}</label>`

/** Purpose of a page. The page of a developer's link needs no key of an environment. */
type PagePurpose = LinkPurpose | "confirm"

const pages: Readonly<Record<PagePurpose, Page>> = {
  confirm: {
    title: "Confirm your email",
    button: "Confirm",
    done: "Thank you, your email is confirmed. You can close this page.",
    endpoint: "../v1/developers/email/verify",
    fields: statement("I have made a developer account with this address")
  },
  verify: {
    title: "Confirm your email",
    button: "Confirm",
    done: "Thank you, your email is confirmed. You can close this page.",
    endpoint: "../v1/auth/email/verify",
    fields: statement("I have signed up with this address")
  },
  disown: {
    title: "Not your account?",
    button: "Remove my address",
    done: "Your address and its password were removed from the account. You can close this page.",
    endpoint: "../v1/auth/email/disown",
    fields:
      "<p>Somebody used your email address for an account that is not yours. " +
      "Remove it, and nobody can sign in to that account with your address.</p>" +
      statement("This account is not mine")
  },
  reset: {
    title: "Choose a new password",
    button: "Set the password",
    done: "Your password is set. Sign in with it in the app; you can close this page.",
    endpoint: "../v1/auth/password/reset",
    fields:
      `<label>New password<input name="password" type="password" required autofocus ` +
      `autocomplete="new-password" minlength="${sessionLimits.passwordMinCharacters}" ` +
      `maxlength="${sessionLimits.passwordMaxCharacters}"></label>`
  }
}

const scriptOf = (purpose: PagePurpose, { done, endpoint }: Page): string => `
const link = new URLSearchParams(location.hash.slice(1));
const token = link.get("svc_${purpose}"), key = link.get("svc_key");
const form = document.querySelector("form"), message = document.querySelector("output");
const button = form.querySelector("button");
const finish = (text) => { form.hidden = true; message.textContent = text; };
const expired = "This link was used or has expired. Please request a new one.";
// A reload repeats the request with this key, if its response was lost.
const keyName = "svc_repeat:" + token?.slice(-16);
let repeatKey = crypto.getRandomValues(new Uint32Array(5)).join("-");
try {
  repeatKey = sessionStorage.getItem(keyName) ?? repeatKey;
  sessionStorage.setItem(keyName, repeatKey);
} catch {} // Without a storage, the key lasts as long as the page.
const isComplete = token && (key || ${purpose === "confirm"});
if (!isComplete) finish("This link is incomplete. Please open it again from the mail.");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  message.textContent = "";
  try {
    const response = await fetch("${endpoint}", {
      method: "POST",
      headers: {
        "content-type": "application/json", "x-svc-key": key ?? "", "idempotency-key": repeatKey
      },
      body: JSON.stringify({ token, ...Object.fromEntries(new FormData(form)) })
    });
    const { error } = await response.json();
    if (response.ok) {
      history.replaceState(null, "", location.pathname);
      return finish("${done}");
    }
    if (["invalid_token", "invalid_key"].includes(error.code)) return finish(expired);
    message.textContent = error.code === "idempotency_key_reused"
      ? "This link has set another password already. Sign in with that one."
      : error.message;
  } catch {
    message.textContent = "The request failed. Please try again.";
  }
  button.disabled = false;
});
`

const cspHashOf = (text: string): string => `'sha256-${hash("sha256", text, "base64")}'`

const pageOf = (purpose: PagePurpose): HttpServerResponse.HttpServerResponse => {
  const page = pages[purpose]
  const script = scriptOf(purpose, page)
  const html =
    `<!doctype html><html lang="en"><head><meta charset="utf-8">` +
    `<meta name="viewport" content="width=device-width, initial-scale=1">` +
    `<title>${page.title}</title><style>${style}</style></head>` +
    `<body><main><h1>${page.title}</h1><form>${page.fields}<button>${page.button}</button></form>` +
    `<p><output></output></p><noscript>This page needs JavaScript.</noscript></main>` +
    `<script>${script}</script></body></html>`
  const policy =
    `default-src 'none'; script-src ${cspHashOf(script)}; style-src ${cspHashOf(style)}; ` +
    `connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`
  return HttpServerResponse.text(html, {
    contentType: "text/html; charset=utf-8",
    headers: { "content-security-policy": policy, "referrer-policy": "no-referrer" }
  })
}

/** `GET /-/verify`, `GET /-/reset`, `GET /-/disown` and `GET /-/confirm`. */
export const EmailPages = Layer.mergeAll(
  HttpRouter.add("GET", paths.confirm, pageOf("confirm")),
  HttpRouter.add("GET", paths.verify, pageOf("verify")),
  HttpRouter.add("GET", paths.reset, pageOf("reset")),
  HttpRouter.add("GET", paths.disown, pageOf("disown"))
)

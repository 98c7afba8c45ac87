/** A checkbox for consent to news by mail, for the game's sign-up screen. */
import type { Ages } from "./ages.ts"
import type { News } from "./news.ts"
import type { Sessions } from "./sessions.ts"

/** The text beside the checkbox, by language. */
const texts: Readonly<Record<string, string>> = {
  ar: "أرسلوا لي الأخبار بالبريد الإلكتروني",
  de: "Neuigkeiten per E-Mail erhalten",
  en: "Send me news by email",
  es: "Quiero recibir novedades por correo electrónico",
  fr: "Recevoir des nouvelles par e-mail",
  it: "Voglio ricevere novità via e-mail",
  ja: "ニュースをメールで受け取る",
  ko: "이메일로 소식 받기",
  nl: "Stuur mij nieuws per e-mail",
  pl: "Chcę otrzymywać wiadomości e-mailem",
  pt: "Quero receber novidades por e-mail",
  ru: "Получать новости по электронной почте",
  tr: "Haberleri e-posta ile gönderin",
  zh: "通过电子邮件接收新闻"
}

export interface OptInBoxOptions {
  /** Language of the text, such as `de` or `pt-BR`. Default: the page's, else English. */
  readonly language?: string
  /** Text instead of the one of the language. */
  readonly text?: string
}

export interface OptInBox {
  /** Whether there is a checkbox: not in apps for kids, for children, or if the config turns it off. */
  readonly shown: boolean
  /**
   * Stores the choice of the player who has signed in meanwhile, and returns the stored one. Without a
   * checkbox it does nothing and returns false.
   */
  submit(): Promise<boolean>
}

/** The parts of a client that the checkbox needs. */
export interface OptInClient {
  readonly ages: Pick<Ages, "profile">
  readonly news: News
  readonly sessions: Pick<Sessions, "resume">
}

const mayAsk = async ({ ages, news, sessions }: OptInClient): Promise<boolean> => {
  if (!(await news.enabled())) return false
  return (await sessions.resume()) === null || (await ages.profile()).capabilities.news
}

/** The language of the page, or of the part that has the element. */
const languageAt = (element: Element): string =>
  element.closest<HTMLElement>("[lang]")?.lang || navigator.language

const textIn = (language: string) => {
  const [primary = ""] = language.toLowerCase().split("-")
  const known = Object.hasOwn(texts, primary) ? primary : "en"
  return { lang: known, text: texts[known] ?? "" }
}

/**
 * Renders an unchecked checkbox with a label into the element, in place of its content. Renders
 * nothing if the service may not ask the player. Call `submit` after the sign-up.
 *
 * @example
 * const box = await optInBox(document.querySelector("#news"), client)
 * form.onsubmit = async () => {
 *   await client.email.signUp({ email, password })
 *   await box.submit()
 * }
 */
export const optInBox = async (
  element: Element,
  client: OptInClient,
  options: OptInBoxOptions = {}
): Promise<OptInBox> => {
  const shown = await mayAsk(client)
  if (!shown) {
    element.replaceChildren()
    return { shown, submit: async () => false }
  }
  const label = element.ownerDocument.createElement("label")
  const input = element.ownerDocument.createElement("input")
  input.type = "checkbox"
  const { lang, text } = textIn(options.language ?? languageAt(element))
  if (options.text === undefined) label.lang = lang
  label.dir = "auto"
  label.append(input, ` ${options.text ?? text}`)
  element.replaceChildren(label)
  return { shown, submit: () => client.news.choose(input.checked) }
}

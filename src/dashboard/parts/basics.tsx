/** Basic parts of views: titles, times, ids to copy, code to copy, badges, panels. */
import { type ComponentChildren, Fragment } from "preact"
import { useState } from "preact/hooks"
import { notify, tick } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { exactTime, relativeTime } from "../core/time.ts"
import { Icon } from "./icon.tsx"

/** The head of a view, which also names the page. */
export const Title = ({
  children,
  lead,
  text
}: {
  readonly text: string
  readonly lead?: string
  readonly children?: ComponentChildren
}) => {
  document.title = `${text} · ${texts.product}`
  return (
    <div class="title">
      <h1>{text}</h1>
      <span class="grow" />
      {children}
      {lead !== undefined && <p class="lead">{lead}</p>}
    </div>
  )
}

export const Panel = ({
  actions,
  children,
  lead,
  title
}: {
  readonly title: string
  readonly lead?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) => (
  <section class="panel" aria-label={title}>
    <header>
      <h2>{title}</h2>
      <span class="grow" />
      {actions}
      {lead !== undefined && <p class="soft small">{lead}</p>}
    </header>
    {children}
  </section>
)

/** Terms with their values; an entry that does not apply is left out. */
export const Facts = ({
  bare = false,
  of
}: {
  /** Whether the place has its own distances. */
  readonly bare?: boolean
  readonly of: ReadonlyArray<readonly [term: string, value: ComponentChildren] | false>
}) => (
  <dl class={bare ? "facts" : "facts body"}>
    {of.map(
      (fact) =>
        fact !== false && (
          <Fragment key={fact[0]}>
            <dt>{fact[0]}</dt>
            <dd>{fact[1]}</dd>
          </Fragment>
        )
    )}
  </dl>
)

/** A button that does something here; `kind` is how it looks, `label` what a screen reader says. */
export const Button = ({
  children,
  disabled,
  kind = "",
  label,
  onClick,
  pressed
}: {
  readonly children: ComponentChildren
  readonly onClick: () => unknown
  readonly kind?: string
  readonly label?: string
  readonly disabled?: boolean
  readonly pressed?: boolean
}) => (
  <button
    type="button"
    class={`button ${kind}`}
    aria-label={label}
    aria-pressed={pressed}
    disabled={disabled}
    onClick={() => void onClick()}
  >
    {children}
  </button>
)

export const Time = ({ at }: { readonly at: string | null }) => {
  if (at === null) return <span class="soft">{texts.never}</span>
  void tick.value
  return (
    <time dateTime={at} title={exactTime(at)}>
      {relativeTime(at)}
    </time>
  )
}

const copyText = async (text: string): Promise<void> => {
  try {
    await navigator.clipboard.writeText(text)
    notify(texts.copied)
  } catch {
    notify(texts.notCopied)
  }
}

/** A short text in mono with a copy button. */
export const Copyable = ({ label, text }: { readonly text: string; readonly label: string }) => (
  <span class="copy">
    <code>{text}</code>
    <Button kind="quiet small" label={`${texts.copy} ${label}`} onClick={() => copyText(text)}>
      <Icon name="copy" />
    </Button>
  </span>
)

/** Code to copy. */
export const Snippet = ({ label, text }: { readonly text: string; readonly label: string }) => (
  <div class="snippet">
    <pre tabIndex={0} role="region" aria-label={label}>
      {text}
    </pre>
    <Button kind="small" onClick={() => copyText(text)}>
      <Icon name="copy" />
      {texts.copy}
    </Button>
  </div>
)

export const Badge = ({
  children,
  kind = ""
}: {
  readonly kind?: "" | "green" | "amber" | "red" | "blue"
  readonly children: ComponentChildren
}) => <span class={`badge ${kind}`}>{children}</span>

/** A number with separators. */
export const count = (value: number): string => value.toLocaleString("en")

const steps = ["B", "KiB", "MiB", "GiB", "TiB"]

/** Bytes in the largest unit that keeps a digit before the point. */
export const bytes = (value: number): string => {
  const step = Math.min(steps.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10))
  const scaled = value / 1024 ** step
  return `${scaled >= 10 || step === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${steps[step]}`
}

/** Opens on demand: JSON as people read it. */
export const JsonText = ({ label, value }: { readonly value: unknown; readonly label: string }) => {
  const [open, setOpen] = useState(false)
  return (
    <details open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary class="small">{label}</summary>
      {open && <Snippet label={label} text={JSON.stringify(value, null, 2)} />}
    </details>
  )
}

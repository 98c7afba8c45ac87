/** Fields, and forms that send one request and show its error in place. */
import type { ComponentChildren, JSX } from "preact"
import { useId, useState } from "preact/hooks"
import { ApiError } from "../core/api.ts"
import { Failure } from "./load-states.tsx"

interface FieldProps {
  readonly label: string
  readonly name?: string
  readonly hint?: string
  readonly type?: "text" | "email" | "password" | "number" | "date" | "search"
  readonly value?: string
  readonly placeholder?: string
  readonly autocomplete?: string
  readonly pattern?: string
  /** What the browser adds when the pattern does not match. */
  readonly title?: string
  readonly maxLength?: number
  readonly step?: string
  readonly required?: boolean
  readonly onValue?: (value: string) => void
}

/** A labelled input. */
export const Field = ({ hint, label, onValue, type = "text", ...input }: FieldProps) => {
  const id = useId()
  // The types of Preact have one element for each type of input; this one may be several.
  const kind = { type: type as "text" }
  const note = hint === undefined ? {} : { "aria-describedby": `${id}-hint` }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...input}
        {...note}
        {...kind}
        id={id}
        class="input"
        onInput={({ currentTarget }) => onValue?.(currentTarget.value)}
      />
      {hint !== undefined && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  )
}

/** A labelled text of several lines; `mono` is for code. */
export const TextField = ({
  label,
  mono = false,
  ...area
}: JSX.IntrinsicElements["textarea"] & { readonly label: string; readonly mono?: boolean }) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea {...area} id={id} class={mono ? "input mono" : "input"} />
    </div>
  )
}

/** A labelled choice. */
export const Choice = ({
  hideLabel = false,
  label,
  onChoose,
  options,
  value
}: {
  readonly label: string
  readonly hideLabel?: boolean
  readonly value: string
  readonly options: ReadonlyArray<readonly [value: string, text: string]>
  readonly onChoose: (value: string) => void
}) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id} class={hideLabel ? "hidden-text" : ""}>
        {label}
      </label>
      <select
        id={id}
        class="select"
        value={value}
        onChange={({ currentTarget }) => onChoose(currentTarget.value)}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  )
}

/** The texts of a form by the names of its fields; empty ones are absent. */
export type Values = Readonly<Record<string, string>>

const valuesOf = (form: HTMLFormElement): Values =>
  Object.fromEntries(
    Array.from(new FormData(form)).flatMap(([name, value]) =>
      typeof value === "string" && value !== "" ? [[name, value]] : []
    )
  )

/** Runs an action once at a time and keeps its error. */
export const useAction = <A extends ReadonlyArray<unknown>>(
  action: (...given: A) => Promise<void>
) => {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | undefined>(undefined)
  const run = async (...given: A): Promise<void> => {
    if (busy) return
    setBusy(true)
    setError(undefined)
    try {
      await action(...given)
    } catch (failure) {
      setError(failure instanceof ApiError ? failure : new ApiError(0, undefined, undefined))
    }
    setBusy(false)
  }
  return { busy, error, run }
}

/** A form that sends its values; `after` stands beside the button. */
export const Form = ({
  after,
  children,
  danger = false,
  send,
  submit
}: {
  readonly children: ComponentChildren
  readonly submit: string
  readonly danger?: boolean
  readonly after?: ComponentChildren
  readonly send: (values: Values) => Promise<void>
}) => {
  const { busy, error, run } = useAction(send)
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault()
        void run(valuesOf(event.currentTarget))
      }}
    >
      {children}
      {error !== undefined && <Failure error={error} />}
      <div class="row end">
        {after}
        <button class={`button ${danger ? "danger" : "primary"}`} disabled={busy}>
          {submit}
        </button>
      </div>
    </form>
  )
}

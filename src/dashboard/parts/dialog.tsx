/** Modal dialogs on the browser's own element: focus stays inside, Escape closes. */
import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"
import { texts } from "../core/texts.ts"
import { Button } from "./basics.tsx"
import { Field, Form } from "./form.tsx"

export const Dialog = ({
  children,
  close,
  title,
  wide = false
}: {
  readonly title: string
  readonly wide?: boolean
  readonly close: () => void
  readonly children: ComponentChildren
}) => {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => element.current?.showModal(), [])
  return (
    <dialog ref={element} class={wide ? "wide" : ""} aria-labelledby={id} onClose={close}>
      <div class="content">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

/** Question before something that cannot be undone; with `name`, the person has to type it. */
export const Confirm = ({
  action,
  close,
  children,
  name,
  run,
  title
}: {
  readonly title: string
  readonly action: string
  /** Name that the person has to type. */
  readonly name?: string | undefined
  readonly children?: ComponentChildren
  readonly close: () => void
  readonly run: () => Promise<void>
}) => {
  const [typed, setTyped] = useState("")
  const matches = name === undefined || typed === name
  const send = async () => {
    if (!matches) return
    await run()
    close()
  }
  return (
    <Dialog title={title} close={close}>
      <Form submit={action} danger send={send} after={<Cancel close={close} />}>
        {children}
        {name !== undefined && (
          <Field
            label={texts.confirm.type(name)}
            value={typed}
            autocomplete="off"
            pattern={name.replaceAll(/[^\w\s]/g, "\\$&")}
            required
            onValue={setTyped}
          />
        )}
      </Form>
    </Dialog>
  )
}

export const Cancel = ({ close }: { readonly close: () => void }) => (
  <Button onClick={close}>{texts.cancel}</Button>
)

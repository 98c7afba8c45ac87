/** A payment at the provider's page, which opens in a new tab while this page waits for the report. */
import { useEffect, useRef, useState } from "preact/hooks"
import { randomText } from "#client/pkce"
import { ask, type Response } from "../../core/api.ts"
import { notify } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { cents, centsOf } from "../../parts/amounts.ts"
import { Dialog } from "../../parts/dialog.tsx"
import { Field, Form } from "../../parts/form.tsx"
import { useLoad } from "../../parts/load.ts"
import { Failure } from "../../parts/load-states.tsx"
import { Button, Panel } from "../../parts/basics.tsx"

const { money: own } = texts

type Checkout = Response<"POST /v1/money/prepaid/checkout">["checkout"]

const pollMillis = 2000

/** Address to which the payment page returns. */
const returnUrl = (payment: "paid" | "cancelled"): string =>
  `${location.origin}/dashboard/money?payment=${payment}`

const Payment = ({
  checkout,
  close,
  done
}: {
  readonly checkout: Checkout
  readonly close: () => void
  readonly done: () => void
}) => {
  const { data, error, refresh } = useLoad(
    `checkout/${checkout.id}`,
    (signal) =>
      ask("GET /v1/money/prepaid/checkouts/:checkoutId", {
        params: { checkoutId: checkout.id },
        signal
      }),
    pollMillis
  )
  const status = data?.checkout.status ?? "open"
  useEffect(() => {
    if (status !== "paid") return
    notify(own.paid(cents(checkout.amount)))
    done()
  }, [status])
  return (
    <Dialog title={own.payTitle(cents(checkout.amount))} close={close}>
      {status === "open" && (
        <>
          <p>{own.payText}</p>
          <div class="row">
            <a class="button primary" href={checkout.url} target="_blank" rel="noreferrer">
              {own.openPayment}
            </a>
            <span class="soft" role="status">
              {own.waiting}
            </span>
          </div>
        </>
      )}
      {(status === "expired" || status === "failed") && (
        <p class="notice amber">{own.ended[status]}</p>
      )}
      {error !== undefined && <Failure error={error} retry={refresh} />}
      <div class="row end">
        <Button onClick={close}>{own.close}</Button>
      </div>
    </Dialog>
  )
}

export const TopUp = ({ refresh }: { readonly refresh: () => void }) => {
  const [checkout, setCheckout] = useState<Checkout | undefined>(undefined)
  // A repeated request after a lost response continues the same payment.
  const key = useRef(randomText())
  const close = () => {
    key.current = randomText()
    setCheckout(undefined)
  }
  return (
    <Panel title={own.topUp} lead={own.topUpLead}>
      <div class="body">
        <Form
          submit={own.toPayment}
          send={async ({ amount = "" }) => {
            const body = {
              amount: centsOf(amount),
              successUrl: returnUrl("paid"),
              cancelUrl: returnUrl("cancelled")
            }
            const headers = { "idempotency-key": `${key.current}-${body.amount}` }
            const { checkout } = await ask("POST /v1/money/prepaid/checkout", { body, headers })
            setCheckout(checkout)
          }}
        >
          <Field
            label={own.amount}
            hint={own.amountHint}
            name="amount"
            type="number"
            step="0.01"
            value="25"
            required
          />
        </Form>
      </div>
      {checkout !== undefined && (
        <Payment
          checkout={checkout}
          close={close}
          done={() => {
            close()
            refresh()
          }}
        />
      )}
    </Panel>
  )
}

import type { CheckoutChange } from '../../domain/checkout-change.ts'

/** One line each, as Markdown. */
export const describeChange = (change: CheckoutChange): string => {
  switch (change.kind) {
    case 'head-moved':
      return `HEAD moved from ${change.from} to ${change.to}`
    case 'changed':
    case 'new':
      return `${change.kind} \`${change.path}\``
    case 'reset':
      return `reset to committed content \`${change.path}\``
    case 'unknown':
      return `it couldn't be checked (${change.message})`
  }
}

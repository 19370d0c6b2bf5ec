/** Passes over the add-ons of a cluster, one after another. */
import { counted } from '../core/counted.ts';
import { asError } from '../core/errors.ts';
import { applyChannels, type ChannelPass } from './channel-apply.ts';
import { pause } from '../platform/limit/repeat.ts';
import { serveReadiness } from '../steps/open/readiness.ts';
import { PASSES } from '../requests/channel.ts';
import { useCase } from '../core/request.ts';

/** After a failed pass, and before the first success. */
const SOON_MS = 5000;

/**
 * Repeats passes until the signal aborts. Each reads the channels and the kubeconfig again, as credentials and kinds change. A pass
 * that fails is reported, and repeated soon.
 */
export const watchChannels = useCase(PASSES, async ({ every, ready, ...request }, context): Promise<ChannelPass> => {
  const { signal, report } = context;
  let isReady = false;
  await using _server = await serveReadiness(ready, () => isReady, 'the last pass has not succeeded');
  for (;;) {
    let text: string;
    try {
      const pass = await applyChannels(request, context);
      isReady = hasSucceeded(pass);
      text = summaryOf(pass);
    } catch (error) {
      signal.throwIfAborted();
      isReady = false;
      const { message, hint } = asError(error) as Error & { readonly hint?: string };
      text = hint === undefined ? message : `${message}; ${hint}`;
    }
    report({ type: 'note', level: isReady ? 'info' : 'warning', text });
    await pause(isReady ? every : Math.min(SOON_MS, every), { signal });
  }
});

function hasSucceeded({ addons, errors }: ChannelPass): boolean {
  return errors.length === 0 && addons.every(({ state }) => state === 'unchanged' || state === 'applied');
}

function summaryOf({ addons, errors }: ChannelPass): string {
  const failed = addons.flatMap(({ addon, errors: [first] }) =>
    first === undefined ? [] : [`${addon}: ${first.message}`],
  );
  const applied = addons
    .filter(({ state }) => state === 'applied')
    .map(({ addon, wanted }) => `applied ${addon} ${wanted}`);
  const still = addons.filter(({ state }) => state === 'unchanged').length;
  return [
    ...errors.map(({ message }) => message),
    ...failed,
    ...applied,
    `${counted(still, 'add-on')} up to date`,
  ].join('; ');
}

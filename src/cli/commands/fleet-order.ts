/** `curlew fleet approve|pause|resume|retry|rollback`: what people order about an add-on of a fleet. */
import type { FleetOrder } from '../../app/fleet-order.ts';
import { FLEET_APPROVE, FLEET_PAUSE, FLEET_RESUME, FLEET_RETRY, FLEET_ROLLBACK } from '../../requests/fleet.ts';
import { counted } from '../../core/counted.ts';
import { commandFor } from '../command.ts';

const NEXT =
  'The next pass of curlew fleet apply --yes follows it; curlew fleet plan shows what that would do. With --kubeconfig, the controller of that hub does.';

export const approve = commandFor(FLEET_APPROVE, {
  details: `Approves groups that need it (approval), mandatory groups of which no cluster has proven the content (--unproven, or --group if they do not wait for an approval to begin), a number of removals, a content that would delete most objects of what is there, or lower versions. The approval is for the present content: another content needs another one. ${NEXT}`,
  examples: [
    'curlew fleet approve dashboard fleet/ --group prod',
    'curlew fleet approve dashboard fleet/ --removals 12',
    'curlew fleet approve dashboard fleet/ --downgrade',
    'curlew fleet approve dashboard --kubeconfig hub.conf --group prod',
  ],
  run: async ({ request }, context) => (await import('../../app/fleet-order.ts')).approveAddon(request, context),
  render: (order) => {
    const { addon, revision = '', generation, groups = [], unproven = [], removals, deletions, downgrade } = order;
    const about = generation === undefined ? `the content ${revision.slice(0, 12)}` : `generation ${generation}`;
    const what = [
      ...groups.map((name) => `group ${name}`),
      ...unproven.map((name) => `group ${name} as unproven`),
      ...(removals === undefined ? [] : [counted(removals, 'removal')]),
      ...(deletions === true ? ['deletions'] : []),
      ...(downgrade === true ? ['lower versions'] : []),
    ];
    return lines(order, `${addon}: approved ${what.join(', ')} for ${about}`);
  },
});

export const pause = commandFor(FLEET_PAUSE, {
  details:
    'Also a pass that is under way begins nothing more of it on clusters that it has not come to yet. Works although the files have mistakes.',
  examples: ['curlew fleet pause dashboard fleet/', 'curlew fleet pause dashboard --kubeconfig hub.conf'],
  run: async ({ request }, context) => (await import('../../app/fleet-order.ts')).pauseAddon(request, context),
  render: report('paused; curlew fleet resume lets it continue'),
});

export const resume = commandFor(FLEET_RESUME, {
  details: NEXT,
  examples: ['curlew fleet resume dashboard fleet/'],
  run: async ({ request }, context) => (await import('../../app/fleet-order.ts')).resumeAddon(request, context),
  render: report('no longer paused'),
});

export const retry = commandFor(FLEET_RETRY, {
  details: `What has failed is otherwise tried again only when the add-on changes. ${NEXT}`,
  examples: ['curlew fleet retry dashboard fleet/'],
  run: async ({ request }, context) => (await import('../../app/fleet-order.ts')).retryAddon(request, context),
  render: report('the next pass tries again where it has failed'),
});

export const rollback = commandFor(FLEET_ROLLBACK, {
  details: `Each cluster gets what was healthy on it before, also if its file has been changed since. The rollout then stops until the add-on changes. ${NEXT}`,
  examples: ['curlew fleet rollback dashboard fleet/'],
  run: async ({ request }, context) => (await import('../../app/fleet-order.ts')).rollBackAddon(request, context),
  render: report('the next pass brings it back to what was healthy before'),
});

function report(what: string): (order: FleetOrder) => readonly string[] {
  return (order) => lines(order, `${order.addon}: ${what}`);
}

function lines({ warning }: FleetOrder, text: string): readonly string[] {
  return [text, ...(warning === undefined ? [] : [`warning: ${warning}`])];
}

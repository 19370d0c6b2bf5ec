/** What a controller says of an add-on's registration from one pass to the next, while the server refuses what it answers. */
import { createPrivateKey } from 'node:crypto';
import { setImmediate as tick } from 'node:timers/promises';
import type { KubeApi } from '../../../src/cluster/kube/api.ts';
import { Refused, type Call } from '../../../src/cluster/kube/call.ts';
import { agentUser } from '../../../src/fleet/hub/identity.ts';
import {
  addonRequest,
  readAgentRequest,
  requestObject,
  type AgentRequest,
} from '../../../src/fleet/hub/certificate-requests.ts';
import { AddonRights } from '../../../src/fleet/hub/run/addon-rights.ts';
import { passRequests } from '../../../src/fleet/hub/run/renewals.ts';
import type { ClusterAddon } from '../../../src/fleet/rollout/fleet.ts';
import { makeAuthority } from '../../../src/formats/signing/authority.ts';
import { makeRequest } from '../../../src/formats/signing/certificate-request.ts';
import { makeKeyPair } from '../../../src/formats/signing/keys.ts';
import { Backoff } from '../../../src/platform/limit/backoff.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/addon-rights');
const SIGNER = 'example.com/agents';
const AGENT = agentUser('paris', '0123456789abcdef'.repeat(2));
const NAME = 'curlew-paris-x7k2p';
const APPROVED = { conditions: [{ type: 'Approved' }] };

/** A request for the add-on `web`, as the API server has it. */
function asked(status: object): AgentRequest {
  const csr = makeRequest(
    { commonName: 'agent', organizations: ['agents'] },
    createPrivateKey(makeKeyPair(undefined).privateKey),
  );
  const { metadata, spec } = requestObject('curlew-paris-', csr, addonRequest('web', SIGNER)) as Record<string, object>;
  const read = readAgentRequest({
    metadata: { ...metadata, name: NAME, resourceVersion: '1', creationTimestamp: '2026-01-02T03:04:05Z' },
    spec: { ...spec, username: AGENT, groups: ['curlew:clusters'] },
    status,
  });
  if (read === undefined) throw new Error('it is not read');
  return read;
}

/** The add-on `web` on `paris`, whose template asks for a certificate of the signer. */
function record(): ClusterAddon {
  const subject = { user: 'agent', groups: ['agents'] };
  const customSigner = { signerName: SIGNER, signingCA: { name: 'ca' }, subject };
  const values = { templates: [{ registration: [{ type: 'CustomSigner', customSigner }] }] };
  const spec = { action: 'Install', source: { template: 'web' }, values };
  return { cluster: 'paris', addon: 'web', spec } as unknown as ClusterAddon;
}

/** A hub that has accepted the agent of `paris`: its RoleBinding is listed, and never changes. */
function hubApi(): KubeApi {
  const metadata = { name: 'curlew-agent', namespace: 'fleet-paris', uid: 'x', resourceVersion: '1' };
  const items = [{ metadata, subjects: [{ kind: 'User', name: AGENT }] }];
  const value = { metadata: { resourceVersion: '1' }, items };
  return {
    now: () => new Date(),
    ask: async () => Promise.resolve({ kind: 'answer', value, bytes: 0 }),
    follow: async (_path: string, { signal }: { readonly signal: AbortSignal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  } as unknown as KubeApi;
}

for (const [what, status, refuses] of [
  ['approve', {}, '/approval'],
  ['sign', APPROVED, '/status'],
] as const) {
  test(`a registration that the controller may not ${what} says so until it may, without a change between passes`, async () => {
    const { certificate, key } = makeAuthority('agents', { days: 30 });
    const data = { 'tls.crt': certificate, 'tls.key': key.reveal() };
    const texts = Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
    let mayAnswer = false;
    const call: Call = async (_doing, { path }) => {
      if (!mayAnswer && path.includes(refuses)) throw new Refused('no', 'no', { status: 403 });
      const annotations = { 'fleet.curlew.dev/signer': SIGNER };
      const metadata = { name: NAME, uid: 'x', resourceVersion: '2', labels: {}, annotations, finalizers: [] };
      const value = { metadata, data: Object.fromEntries(texts) as object, subjects: [{ kind: 'User', name: AGENT }] };
      return Promise.resolve({ outcome: 'done', value } as never);
    };
    const one = {
      at: { name: 'web', uid: 'x', resourceVersion: '1' },
      annotations: {},
      status: undefined,
      record: record(),
    };
    const clusterAddons = { problem: undefined, values: () => [one] };
    const said: (string | undefined)[] = [];
    const ended = new AbortController();
    const { signal } = ended;
    const onChange = (): void => void said.push(addons.registrationOf(one.record)?.refusal);
    const addons = new AddonRights(hubApi(), { call, clusterAddons, onChange });
    const running = addons.run(signal).catch(() => undefined);
    while (addons.problem !== undefined) await tick();
    const pass = async (now: object): Promise<void> => {
      const requests = { problem: undefined, values: () => [asked(now)], put: () => undefined };
      await passRequests({ call, signal, requests, backoff: new Backoff(), say: () => undefined, addons });
    };
    for (let passes = 0; passes < 3; passes += 1) await pass(status);
    assert.equal([said[0], said.length], [undefined, 2]);
    assert.match(
      said[1] ?? '',
      /^the controller may not sign for example.com\/agents: apply what curlew hub manifests/,
    );
    mayAnswer = true;
    await pass(APPROVED);
    assert.equal(said.slice(2), [undefined]);
    ended.abort(new Error('over'));
    await running;
  });
}

test.run();

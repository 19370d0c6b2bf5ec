/** What a status of an add-on lists, within its limit of bytes. */
import type { FleetAddonStatus } from '../../../src/fleet/rollout/fleet.ts';
import { withinLimit } from '../../../src/fleet/hub/status-limit.ts';
import { statusObject } from '../../../src/fleet/hub/write.ts';
import type { JsonObject } from '../../support/api-server/fields.ts';
import * as assert from '../../support/assert.ts';
import { openMemoryHub } from '../../support/hub-memory.ts';
import { hubAddon } from '../../support/hub-objects.ts';
import { answering, change, NOW, pass } from '../../support/hub-passes.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/status-limit');
const MOST = 12_288;

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
const longName = (at: number): string => `site-${at}-${'x'.repeat(63)}`.slice(0, 63);
const FAILED = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [longName(at), 'y'.repeat(63)]));

test('a status with a hundred long names of failures gets the first of them, and counts the others', async () => {
  for (const spec of [{ rollout: { type: 'Progressive', maxFailures: '100%' } }, { clusterSelector: 'none' }]) {
    await using memory = await openMemoryHub([hubAddon('web'), answering('oslo', 'v1.34.1')]);
    await change(memory, { ...hubAddon('web', spec) });
    await pass(memory, 0);
    const stored = memory.hub.addons.get({ name: 'web' })?.status as JsonObject;
    const failed = { retry: '1970-01-01T00:00:00Z', clusters: FAILED };
    await change(memory, { kind: 'FleetAddon', metadata: { name: 'web' }, status: { ...stored, failed } });
    await pass(memory, 1);
    const status = memory.hub.addons.get({ name: 'web' })?.status as {
      readonly failed: { readonly clusters: object; readonly more: number };
    };
    const named = Object.keys(status.failed.clusters).length;
    assert.equal([named > 25, named + status.failed.more], [true, 100]);
    assert.ok(bytesOf(status) <= MOST, String(bytesOf(status)));
    const before = memory.writes.length;
    await pass(memory, 2);
    assert.equal(memory.writes.slice(before), []);
  }
});

test('long texts of any alphabet leave room for the first cluster that waits', async () => {
  for (const letter of ['x', '√', '😀']) {
    const text = letter.repeat(2000);
    const clusters = Object.fromEntries(Object.entries(FAILED).slice(0, 30));
    await using memory = await openMemoryHub([hubAddon('web'), answering('oslo', 'v1.34.1')]);
    await pass(memory, 0);
    const object = memory.hub.addons.get({ name: 'web' });
    assert.ok(object?.addon.status);
    const waiting = [{ cluster: longName(1), reason: 'Unreachable', message: text, since: NOW }];
    const status: FleetAddonStatus = {
      ...object.addon.status,
      stopped: text,
      wentBack: text,
      asks: text,
      failed: { retry: 0, clusters },
      batch: Object.keys(FAILED),
      reasons: { Unreachable: 1 },
      waiting,
    };
    const written = withinLimit(statusObject(status, object, NOW), status.reasons) as unknown as {
      readonly waiting: readonly { readonly message: string }[];
      readonly stopped: string;
    };
    assert.ok(bytesOf(written) <= MOST, `${letter} ${bytesOf(written)}`);
    assert.match(written.stopped, new RegExp(`^${letter}{200,}…$`, 'u'));
    assert.match(written.waiting[0]?.message ?? '', new RegExp(`^${letter}{200,}…$`, 'u'));
  }
});

test.run();

/** What a controller writes on a real API server, what a plan asks, and their memory: the small share of `npm run bench -- --only fleet`. */
import { measureDiff } from '../bench/fleet-diff.ts';
import { measureHub } from '../bench/hub.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS } from './support/api-server.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/hub-scale', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const TITLE = 'an idle controller writes nothing, one changed add-on only its own objects, and memory stays small';

if (reason === undefined) {
  test(TITLE, async () => {
    await using box = await tree();
    const {
      firstPass,
      firstCpu: _cpu,
      firstWrites,
      scrape,
      ...counts
    } = await measureHub(box.at('server'), { clusters: 10, addons: 4, idleMs: 3000 });
    assert.ok(firstPass > 0);
    // Each add-on of a cluster is one; besides, each cluster gets a finalizer, and each add-on that and its status.
    assert.ok(firstWrites <= 2, `${firstWrites} writes for each add-on of a cluster`);
    assert.ok(scrape.requests < 10, `ten scrapes cost ${scrape.requests} requests`);
    assert.ok(scrape.bytes > 0 && scrape.bytes < 10_000, `${scrape.bytes} bytes`);
    assert.equal({ ...counts, megabytes: 0 }, { idleWrites: 0, changed: 10, megabytes: 0 });
    assert.ok(counts.megabytes <= 150, `${counts.megabytes} MB`);
  });
} else test.skip(TITLE, reason);

const TIME = '/usr/bin/time';
const PLAN = 'a plan with a diff asks a cluster twice for each object more than one without, and memory stays small';
const noTime = cannotRun(TIME);
if (noTime === undefined) {
  test(PLAN, async () => {
    const { plain, diff } = await measureDiff(MAIN, 4);
    assert.equal([plain.requests, diff.requests], [11, 21]);
    assert.ok(diff.rss <= 150, `${diff.rss} MB`);
  });
} else test.skip(PLAN, noTime);

test.run();

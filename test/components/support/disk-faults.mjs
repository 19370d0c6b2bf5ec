/**
 * To be preloaded (`node --import`): counts the calls of a command that write to a disk, sync it or name something there, and
 * lets one of them meet a full disk. FAULT_LOG names the file that takes the calls; FAULT_AT is the number of the one to fail,
 * from 1.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const { FAULT_AT, FAULT_LOG } = process.env;
// What has no faults yet.
const { writeSync } = fs;
const log = FAULT_LOG === undefined || !isMainThread ? undefined : fs.openSync(FAULT_LOG, 'a');
let count = 0;

/** Throws for the call that is to fail. */
function meet(call, path = '') {
  if (/^\/(?:dev|proc)\//.test(path)) return;
  count += 1;
  if (log !== undefined) writeSync(log, `${call} ${path}\n`);
  if (String(count) !== FAULT_AT) return;
  const message = `ENOSPC: no space left on device, ${call}`;
  throw Object.assign(new Error(message), { code: 'ENOSPC', errno: -28, syscall: call });
}

if (isMainThread) {
  const paths = new WeakMap();
  const { open } = fs.promises;
  fs.promises.open = async (path, ...rest) => {
    const file = await open(path, ...rest);
    paths.set(file, String(path));
    return file;
  };
  const probe = await open('/dev/null');
  const handle = Object.getPrototypeOf(probe);
  await probe.close();
  for (const call of ['write', 'writev', 'writeFile', 'appendFile', 'sync', 'datasync']) {
    const own = handle[call];
    handle[call] = async function (...args) {
      meet(call, paths.get(this));
      return own.apply(this, args);
    };
  }
  for (const call of ['rename', 'link', 'mkdir', 'symlink', 'writeFile', 'appendFile', 'copyFile']) {
    const own = fs.promises[call];
    fs.promises[call] = async (path, ...rest) => {
      if (typeof path === 'string') meet(call, path);
      return own(path, ...rest);
    };
  }
  for (const call of [
    'writeSync',
    'fsyncSync',
    'fdatasyncSync',
    'renameSync',
    'mkdirSync',
    'writeFileSync',
    'appendFileSync',
  ]) {
    const own = fs[call];
    fs[call] = (path, ...rest) => {
      // The first three numbers are standard streams.
      if (typeof path === 'string' || path > 2) meet(call, String(path));
      return own(path, ...rest);
    };
  }
  syncBuiltinESMExports();
}

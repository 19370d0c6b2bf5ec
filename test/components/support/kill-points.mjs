/**
 * To be preloaded (`node --import`): tells the moments of a run, before, inside and after each write of the journal, each
 * rename, taking and giving back of the lock, each file of an extraction, each start of a hook, each write to the cluster
 * and each load of an image, and kills the process at one of them, or fills its disk up.
 * KILL_LOG names the file that takes the moments; KILL_AT is the one to die at; KILL_MODE is `tree` when hooks and clients
 * of others die, too. FILL_AT is the one at which nothing is left of the disk of SCENE; FILL_LEAVE says how many bytes are.
 */
import childProcess from 'node:child_process';
import { appendFileSync, closeSync, existsSync, openSync, statfsSync, watch, writeSync } from 'node:fs';
import fs from 'node:fs/promises';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';

const { KILL_AT, KILL_MODE, KILL_LOG, FILL_AT, FILL_LEAVE = '0', SCENE } = process.env;
/** Processes, and 1, or -1 for one that its whole session dies with. */
const children = new Map();
const seen = new Map();

function die() {
  if (KILL_MODE === 'tree') {
    for (const [{ pid, exitCode, signalCode }, target] of children) {
      if (exitCode === null && signalCode === null) process.kill(target * pid, 'SIGKILL');
    }
  }
  process.kill(process.pid, 'SIGKILL');
}

/** Names of runs and processes differ from run to run; moments of one name are told apart by a number. */
function moment(name) {
  const plain = name
    .replaceAll(/\d{8}T\d{6}Z-[0-9a-f]{4}/g, 'RUN')
    .replaceAll(/lock\.[\w.-]+/g, 'lock.X')
    .replaceAll(/\.curlew-partial-[\w-]+/g, 'partial');
  const number = (seen.get(plain) ?? 0) + 1;
  seen.set(plain, number);
  const label = `${plain} ${number}`;
  if (KILL_LOG !== undefined) appendFileSync(KILL_LOG, `${label}\n`);
  if (label === FILL_AT) fill();
  return label === KILL_AT;
}

function fill() {
  const { bavail, bsize } = statfsSync(SCENE);
  const file = openSync(`${SCENE}/filler`, 'w');
  const rest = Buffer.alloc(Math.max(0, bavail * bsize - Number(FILL_LEAVE)));
  try {
    for (let at = 0; at < rest.byteLength;) at += writeSync(file, rest, at);
  } catch (error) {
    // A hook has taken the last of it meanwhile.
    if (error.code !== 'ENOSPC') throw error;
  }
  closeSync(file);
}

function here(name) {
  if (moment(name)) die();
}

function around(kind, act) {
  return async (...args) => {
    // What is renamed has a name of its own before.
    const path = kind === 'rename' ? args[1] : args[0];
    const name = `${kind} ${String(path).split('/').slice(-3).join('/')}`;
    here(`${name} before`);
    const result = await act(...args);
    here(`${name} after`);
    return result;
  };
}

const { open, spawn } = { open: fs.open, spawn: childProcess.spawn };
const { rename, rm } = fs;
const renamed = around('rename', rename);
// Between two entries of the journal nothing else happens than this rename: their moments are its own.
fs.rename = async (from, to) => (String(to).endsWith('/carried.sh') ? rename : renamed)(from, to);
fs.link = around('link', fs.link);

const watched = around('rm', rm);
const WATCHED =
  /\/(?:lock|\.old-[^/]*|\.new-[^/]*)$|\/curlew\/(?:addons|packages|kustomize|assets|previous|runs|records\.json)$/;
fs.rm = async (path, options) => (WATCHED.test(String(path)) ? watched : rm)(path, options);

fs.open = async (path, flags, ...rest) => {
  const file = await open(path, flags, ...rest);
  const end = String(path).split('/').slice(-3).join('/');
  if (String(path).endsWith('/journal.jsonl') && String(flags).includes('a')) {
    let written = '';
    const append = file.appendFile.bind(file);
    file.appendFile = async (text) => {
      const { type, action = '' } = JSON.parse(text).entry;
      const name = `journal ${type} ${action}`;
      here(`${name} before`);
      if (moment(`${name} inside`)) {
        writeSync(file.fd, text.slice(0, text.length / 2));
        die();
      }
      await append(text);
      written = name;
    };
    const datasync = file.datasync.bind(file);
    file.datasync = async () => {
      await datasync();
      here(`${written} after`);
    };
  } else if (/\.new-/.test(String(path)) && typeof flags !== 'undefined' && flags !== 'r') {
    here(`extract ${end} opened`);
    const write = file.write.bind(file);
    file.write = async (...args) => {
      const result = await write(...args);
      here(`extract ${end} written`);
      return result;
    };
  }
  return file;
};

const CHANGES = { POST: 'create', PUT: 'replace' };
const { request } = https;

/** A request that changes the cluster: all of it is on its way, then it has been answered. */
https.request = (options, ...rest) => {
  const change = CHANGES[options.method];
  if (change === undefined) return request(options, ...rest);
  const name = `client ${change} ${options.path}`;
  here(`${name} before`);
  const asked = request(options, ...rest);
  asked.once('finish', () => here(`${name} all given`));
  asked.once('response', (answer) => answer.once('end', () => here(`${name} after`)));
  return asked;
};

/** What a client of containerd changes there; undefined when it only asks. */
function changeOf(command, args) {
  return command === 'ctr' ? /\bimages (?:import|tag)\b/.exec(args.join(' '))?.[0] : undefined;
}

const SOME = 128 << 10;

/** A client takes what it is given, if anything: it may be left with some of it, and with all. */
function watchClient(child, name) {
  children.set(child, 1);
  if (child.stdin === null) child.once('spawn', () => here(`${name} all given`));
  else {
    const write = child.stdin.write.bind(child.stdin);
    let bytes = 0;
    child.stdin.write = (chunk, ...rest) => {
      const before = bytes;
      bytes += chunk.length;
      if (before <= SOME && bytes > SOME) here(`${name} some given`);
      return write(chunk, ...rest);
    };
    child.stdin.once('finish', () => here(`${name} all given`));
  }
  child.once('exit', () => here(`${name} after`));
}

childProcess.spawn = (command, args, options) => {
  const change = changeOf(String(command), args);
  if (change !== undefined) here(`client ${change} before`);
  const child = spawn(command, args, options);
  if (change !== undefined) watchClient(child, `client ${change}`);
  // What looks after the log of a hook is none.
  const hook = options?.detached === true ? options.env.CURLEW_HOOK?.split('/')[1] : undefined;
  if (hook !== undefined) {
    children.set(child, -1);
    // A hook in a sandbox asks for its moment by a file.
    if (child.stdin !== null && KILL_AT !== undefined) {
      const watcher = watch(options.cwd, (_, name) => name === 'die' && existsSync(`${options.cwd}/die`) && die());
      child.once('exit', () => watcher.close());
    }
    child.once('spawn', () => here(`spawn ${hook}`));
  }
  return child;
};

syncBuiltinESMExports();

//! Example code for short messages. The bodies of the functions are shown as advice.

use std::error::Error;
use std::path::Path;

type Result = std::result::Result<(), Box<dyn Error>>;

pub fn log_no(folder: &Path, message: &[u8]) -> Result {
    let sync = wrote::SyncPolicy::No;
    let log = wrote::Log::options().sync(sync).open(folder)?;
    // from any thread or task, by a clone or a reference
    let _sequence = log.append(message)?.sequence();
    // now and then, and at the end: all records before it are durable
    log.sync()?;
    Ok(())
}

pub fn log_everysec(folder: &Path, message: &[u8]) -> Result {
    let sync = wrote::SyncPolicy::EverySec;
    let log = wrote::Log::options().sync(sync).open(folder)?;
    // from any thread or task, by a clone or a reference;
    // durable within about a second
    let _sequence = log.append(message)?.sequence();
    log.close()?; // at the end: durable
    Ok(())
}

pub fn log_always(folder: &Path, message: &[u8]) -> Result {
    let sync = wrote::SyncPolicy::Always;
    let log = wrote::Log::options().sync(sync).open(folder)?;
    // from any thread, by a clone or a reference;
    // in a task: log.append(message)?.await?
    log.append(message)?.wait()?; // durable
    Ok(())
}

pub async fn mutex(path: &Path, message: &[u8]) -> Result {
    use tokio::io::AsyncWriteExt;
    let file = tokio::fs::File::create(path).await?;
    let file = std::sync::Arc::new(tokio::sync::Mutex::new(file));
    // in each task, by a clone of the Arc
    file.lock().await.write_all(message).await?;
    // at the end: the last message has reached the kernel
    file.lock().await.flush().await?;
    Ok(())
}

pub async fn mpsc(path: &Path, message: Vec<u8>) -> Result {
    use tokio::io::AsyncWriteExt;
    use tokio::sync::mpsc::channel;
    let (sender, mut receiver) = channel::<Vec<u8>>(1024);
    let mut file = tokio::fs::File::create(path).await?;
    let writer = tokio::spawn(async move {
        while let Some(message) = receiver.recv().await {
            file.write_all(&message).await?;
        }
        file.flush().await // the last message has reached the kernel
    });
    sender.send(message).await?; // in each task, by a clone
    drop(sender); // at the end, and all its clones
    writer.await??;
    Ok(())
}

pub fn flume_bufwriter(path: &Path, message: Vec<u8>) -> Result {
    let (sender, receiver) = flume::unbounded::<Vec<u8>>();
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let writer = std::thread::spawn(move || {
        for message in receiver {
            std::io::Write::write_all(&mut file, &message)?;
        }
        std::io::Write::flush(&mut file)
    });
    sender.send(message)?; // in each thread or task, by a clone
    drop(sender); // at the end, and all its clones
    writer.join().expect("it does not panic")?;
    Ok(())
}

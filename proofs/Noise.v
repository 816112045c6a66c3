(** The noise of [mechanism.py] covers every change that the sensitivity allows. *)

Require Import Reals Lra Psatz List.
From Tacit Require Import Sums Formulas Model.
Local Open Scope R_scope.

(** The Frobenius norm of a symmetric matrix counts its upper triangle twice. *)
Lemma triangle_twice d (M : nat -> nat -> R) :
  (forall i k, M i k = M k i) ->
  below d (fun i => below d (fun k => M i k)) = below d (fun k => M k k)
    + 2 * below d (fun k => below k (fun i => M i k)).
Proof.
  intros symmetric. induction d as [| d IH]; [unfold below; cbn; lra |]. rewrite !below_S.
  transitivity (below d (fun i => below d (fun k => M i k)) + below d (fun i => M i d)
    + below d (fun k => M d k) + M d d).
  - rewrite <- Rplus_assoc. f_equal. f_equal. unfold below. rewrite <- total_plus. apply total_ext.
    intros i _. apply (below_S d (fun k => M i k)).
  - rewrite IH, (below_ext d (fun k => M d k) (fun i => M i d)) by (intros; apply symmetric). lra.
Qed.

Lemma share_of_noise needed weight sd z :
  0 < needed -> 0 < sd -> needed <= weight * sd ->
    Rsqr (z / sd) <= Rsqr weight * Rsqr z / Rsqr needed.
Proof.
  intros positive noisy enough_noise.
  assert (0 < Rsqr needed) by (apply Rsqr_pos_lt; lra).
  assert (0 < Rsqr sd) by (apply Rsqr_pos_lt; lra).
  replace (Rsqr (z / sd)) with (Rsqr z / Rsqr sd) by (unfold Rsqr; field; lra).
  apply Rmult_le_reg_r with (Rsqr needed * Rsqr sd); [now apply Rmult_lt_0_compat |].
  replace (Rsqr z / Rsqr sd * (Rsqr needed * Rsqr sd)) with (Rsqr z * Rsqr needed) by (field; lra).
  replace (Rsqr weight * Rsqr z / Rsqr needed * (Rsqr needed * Rsqr sd))
    with (Rsqr z * Rsqr (weight * sd))
    by (rewrite Rsqr_mult; field; lra).
  apply Rmult_le_compat_l; [apply Rle_0_sqr | apply Rsqr_incr_1; lra].
Qed.

Lemma share_of_part needed weight sd a a' :
  0 < needed -> enough needed weight sd ->
    part sd a a' <= Rsqr weight * Rsqr (a - a') / Rsqr needed.
Proof.
  intros positive calibration. destruct sd as [sd |]; cbn in *; [now apply share_of_noise |].
  apply Rmult_le_pos; [apply Rmult_le_pos; apply Rle_0_sqr |]. left.
  apply Rinv_0_lt_compat, Rsqr_pos_lt. lra.
Qed.

Lemma covered d p n m delta s s' :
  0 < m -> 0 < delta -> (forall i k, xtx s i k = xtx s k i) ->
    (forall i k, xtx s' i k = xtx s' k i) ->
  change d p s s' <= delta -> calibrated m delta p n -> shift d n s s' <= / m.
Proof.
  intros positive some symmetric symmetric' bounded
    (diagonal & off & crossed & squared & counted & solved).
  set (needed := m * delta) in *. assert (0 < needed) as need by (apply Rmult_lt_0_compat; lra).
  rewrite <- (sqrt_square (/ m)) by (left; now apply Rinv_0_lt_compat). apply sqrt_le_1_alt.
  assert (change_squared d p s s' <= delta * delta) as squares.
  { unfold change in bounded. destruct (Rle_dec 0 (change_squared d p s s'))
      as [pos | neg]; [| nra].
    pose proof (sqrt_pos (change_squared d p s s')). rewrite <- (sqrt_sqrt _ pos). nra. }
  apply Rle_trans with (change_squared d p s s' / Rsqr needed).
  - unfold change_squared.
    rewrite (triangle_twice d (fun i k => Rsqr (xtx s i k - xtx s' i k)))
      by (intros; now rewrite symmetric, symmetric').
    unfold Rdiv. rewrite !Rmult_plus_distr_r. repeat apply Rplus_le_compat.
    + unfold below. rewrite <- total_scale_r. apply total_le. intros k _.
      pose proof (share_of_noise needed 1 (sd_diagonal n) (xtx s k k - xtx s' k k) need) as share.
      destruct diagonal. eapply Rle_trans; [now apply share |]. unfold Rdiv. rewrite Rsqr_1. lra.
    + unfold below. rewrite <- total_scale, <- total_scale_r. apply total_le. intros k _.
      rewrite <- total_scale, <- total_scale_r. apply total_le. intros i _.
      pose proof (share_of_noise needed (sqrt 2) (sd_off_diagonal n) (xtx s i k - xtx s' i k) need)
        as share.
      destruct off. rewrite Rsqr_sqrt in share by lra. now apply share.
    + unfold below. rewrite <- total_scale, <- total_scale_r. apply total_le. intros i _.
      destruct crossed. now apply share_of_noise.
    + now apply share_of_part.
    + now apply share_of_part.
    + now apply share_of_part.
  - apply Rle_trans with (delta * delta / Rsqr needed).
    + apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Rsqr_pos_lt; lra | exact squares].
    + apply Req_le. unfold needed, Rsqr. field. lra.
Qed.
